"""Our side of the pipe to plane_child.py: TransferQueue on its own controller, or on a service of ours."""

from pathlib import Path
from typing import Any, Literal, Self

from .peer import NAME, PeerFailed
from .ray_peer import RayPeer, command_of
from .venv import Log, PeerMissing

Call = Literal[
    "notify", "kv_put", "tags", "kv_batch_get", "get_meta", "kv_retrieve_meta", "kv_list", "check_consumption", "clear"
]
CHILD = "bench.peers.plane_child"


class Plane(RayPeer):
    """A running TransferQueue. Every call but `close` raises PeerFailed."""

    @classmethod
    def on(cls, url: str | None, version: str, log: Log) -> Self:
        """With a URL on our service, else on its own controller. Raises PeerMissing."""
        name = f"{NAME} {version} on {'its own controller' if url is None else 'batchmeta'}"
        plane = cls(name, command_of(version, CHILD, log))
        try:
            plane._ask(do="start", url=url)
        except PeerFailed as error:
            plane.close()
            raise PeerMissing(str(error)) from error
        except BaseException:
            plane.close()
            raise
        return plane

    def fill(self, profile: Path) -> None:
        """Write the rows of the profile in the file."""
        self._ask(do="load", profile=str(profile.absolute()))

    def answers(self) -> dict[str, Any]:
        """What the calls that are timed answer, in the plain form of plain.py."""
        return self._ask(do="result")

    def seconds(self, call: Call, calls: int) -> list[float]:
        """Seconds of each of `calls` calls, after a few that are not counted."""
        return list(self._ask(do="time", case=call, calls=calls)["seconds"])
