"""The service on one journal and one port: killed at a named point of its work, it is started again at once."""

from pathlib import Path
from threading import Thread

from tests.conftest import DEADLINE_S, ROOT, ServerProcess
from tests.crash.lives import SITE
from tests.histories.audit import Audit, audit_journal


class Service:
    """Its lives, one after the other. `deaths`: the points at which it was killed, in their order."""

    def __init__(self, folder: Path) -> None:
        self._journal = folder / "journal"
        self._server = self._started("", 0)
        self._watch: Thread | None = None
        self.url = self._server.url
        self.deaths: list[str] = []

    def dies_at(self, point: str) -> None:
        """Kill it now; from its next life on, it dies when it reaches the point (tests/crash/failpoints.py)."""
        self._server.kill()
        self._server = self._started(point, self._port)
        self._watch = Thread(target=self._revive, args=(point,))
        self._watch.start()

    def _revive(self, point: str) -> None:
        self._server._wait()
        self.deaths.append(point)
        self._server = self._started("", self._port)

    def died(self) -> list[str]:
        """Where it was killed so far, once the last life that is to be killed is over. Raises TimeoutError."""
        if self._watch is not None:
            self._watch.join(DEADLINE_S)
            if self._watch.is_alive():
                raise TimeoutError("the service did not reach the point at which it is to die")
        return self.deaths

    def end(self) -> None:
        """Kill it for good."""
        self._server.kill()
        if self._watch is not None:
            self._watch.join()
            self._server.kill()

    def audit(self) -> Audit:
        """The laws of delivery over all that it journaled, once it has ended. Raises Broken."""
        return audit_journal(self._journal)

    @property
    def _port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def _started(self, point: str, port: int) -> ServerProcess:
        environment = {"PYTHONPATH": f"{SITE}:{ROOT}", "FAILPOINT": point}
        return ServerProcess("--journal", self._journal.as_uri(), env=environment, port=port)
