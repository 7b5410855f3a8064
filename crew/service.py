"""The service as a process of its own, as an operator runs it: `python -m app` with a journal in a folder."""

import http.client
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from .processes import StartFailed, end, free_port, kill, launch, log_end, wait_until

HOST = "127.0.0.1"
READY_S = 60
STOP_S = 10
CHECKOUT = Path(__file__).resolve().parent.parent


class ServiceProcess:
    """The service on the journal in `folder`; starting again on the same folder replays it."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port = port or free_port()
        self.url = f"http://{HOST}:{self.port}"
        self._log = folder / "service.log"
        journal = (folder.resolve() / "journal").as_uri()
        self._command = [sys.executable, "-m", "app", "--host", HOST, "--port", str(self.port), "--journal", journal]
        self._process = launch(self._command, CHECKOUT, self._log)

    def wait_ready(self) -> None:
        """Return when `/readyz` says so. Raises StartFailed past the deadline or when the process ends."""
        is_settled = wait_until(lambda: self._process.poll() is not None or self._is_ready(), READY_S)
        if not is_settled or self._process.poll() is not None:
            raise StartFailed(f"the service did not start\n{log_end(self._log)}")

    def _is_ready(self) -> bool:
        with closing(http.client.HTTPConnection(HOST, self.port, timeout=5)) as connection:
            try:
                connection.request("GET", "/readyz")
                return connection.getresponse().status == 200
            except (OSError, http.client.HTTPException):
                return False

    def kill(self) -> None:
        """SIGKILL, like a crash: nothing is flushed, no connection is closed properly."""
        kill(self._process, STOP_S)

    def crash(self) -> None:
        """Kill it and start it again, as a supervisor would. Returns once it is ready; StartFailed if it is not."""
        self.kill()
        self._process = launch(self._command, CHECKOUT, self._log)
        self.wait_ready()

    def stop(self) -> int | None:
        """SIGTERM; the exit status, or None where it cannot be had."""
        status = self._process.poll()
        return end(self._process, STOP_S) if status is None else status


@contextmanager
def service_process(folder: Path) -> Iterator[ServiceProcess]:
    """Launch the service and stop it at the end; `wait_ready` is the caller's, who may start other things meanwhile."""
    service = ServiceProcess(folder)
    try:
        yield service
    finally:
        service.stop()
