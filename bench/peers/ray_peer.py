"""A peer that runs Ray, in the venv with TransferQueue and our client: a folder for Ray, and the checkout to import."""

from collections.abc import Mapping, Sequence
from tempfile import TemporaryDirectory

from .peer import ANSWER_S, NAME, NOTHING, Peer
from .venv import CHECKOUT, Log, python_with_ours

# Read by start_ray in ray_child.py.
FOLDER = "BATCHMETA_BENCH_RAY"


class RayPeer(Peer):
    """A running child of that venv. Ray's files are gone when `close` returns."""

    def __init__(
        self, name: str, command: Sequence[str], answer_s: float = ANSWER_S, environment: Mapping[str, str] = NOTHING
    ) -> None:
        # Not in a folder of the caller's: Ray's sockets are in it, and the path of a socket is short.
        self._folder = TemporaryDirectory(prefix="tq-", ignore_cleanup_errors=True)
        own = {"PYTHONPATH": str(CHECKOUT), FOLDER: self._folder.name}
        super().__init__(name, command, answer_s, {**own, **environment})

    def close(self) -> None:
        """As Peer's."""
        try:
            super().close()
        finally:
            self._folder.cleanup()


def command_of(version: str, module: str, log: Log) -> list[str]:
    """The command that runs a module of the checkout in that venv. Raises PeerMissing."""
    # No -I here: the child imports from the checkout, beside TransferQueue's packages and our client's.
    return [str(python_with_ours(NAME, version, log)), "-m", module]
