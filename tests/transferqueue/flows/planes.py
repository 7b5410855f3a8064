"""Both planes of one storage backend: TransferQueue's own controller and batchmeta, each in processes of its own."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.peers.ray_peer import RayPeer
from crew.yuanrong_worker import yuanrong_storage
from tests.transferqueue.both import VERSION, command

CHILD = "tests.transferqueue.flows.child"
ANSWER_S = 240.0
ENVIRONMENT = {
    "RAY_DEDUP_LOGS": "0",
    # TransferQueue's controller stands still while a claim waits for rows; here none is to come.
    "TQ_CONTROLLER_GET_METADATA_TIMEOUT": "0",
    "TQ_CONTROLLER_GET_METADATA_CHECK_INTERVAL": "0",
}
# A partition's rows that are expected before they come: TransferQueue's default, and one that flows exceed and reach.
EXPECTED = {"SimpleStorage": "1", "Yuanrong": "4"}


class Plane(RayPeer):
    """A running child.py."""

    def begin(self, url: str | None, backend: str, port: int) -> None:
        """Start Ray, and install batchmeta's adapter where there is a URL."""
        self._ask(do="start", url=url, backend=backend, port=port)

    def run(self, flow: str) -> dict[str, Any]:
        """What the flow saw, by step. Raises PeerFailed."""
        return dict(self._ask(do="run", flow=flow)["steps"])


@contextmanager
def plane(backend: str, url: str | None, folder: Path) -> Iterator[Plane]:
    """With a URL batchmeta's, else TransferQueue's own. Raises PeerMissing."""
    with ExitStack() as stack:
        storage = stack.enter_context(yuanrong_storage(folder / "yuanrong")) if backend == "Yuanrong" else None
        environment = ENVIRONMENT | {"TQ_PRE_ALLOC_SAMPLE_NUM": EXPECTED[backend]}
        name = f"TransferQueue {VERSION} on {'its own controller' if url is None else 'batchmeta'}"
        started = stack.enter_context(Plane(name, command(CHILD), ANSWER_S, environment))
        started.begin(url, backend, 0 if storage is None else storage.port)
        yield started
