"""`AsyncClient`: all calls in one object, its making and its closing."""

from types import TracebackType

import httpx

from ..arguments import flag, seconds, text
from ..connection import Connection
from ..retries import DEFAULT, Retries
from .checkpoints import CheckpointCalls
from .clears import ClearCalls
from .loop import ClaimLoops
from .partitions import PartitionCalls
from .reading import ReadingCalls
from .writing import WritingCalls


class AsyncClient(PartitionCalls, WritingCalls, ReadingCalls, ClaimLoops, ClearCalls, CheckpointCalls):
    """The service, one method per call. Keeps connections open, in each event loop its own, which end with that loop.

    `timeout`: seconds without progress after which a call is ConnectionLost. `retries`: every call is sent again after
    a lost connection, a 5xx, a retryable 429, and the 409 for a call whose earlier sending is still on its way, for
    `within_s` seconds (60) and what it waits on purpose. What a gateway answers in the service's place (502, 504, any
    5xx, 408 or 429 without a problem of the service) is a lost connection.
    `transport`: another way to the service, e.g. httpx.MockTransport in a test; it is the same object in all loops, and
    yours to share over loops and forks or not.
    After a fork (of a DataLoader's worker, say) the child opens connections of its own.

    `pin_epoch`: once the state went back to a checkpoint (another client's `restore_checkpoint`), every call is
    EpochMismatch, until `new_epoch`: so what this client was doing does not get mixed up with what was restored.

    A call that changes something carries an `Idempotency-Key`, made for it alone unless `idempotency_key` gives one.
    However often it is sent with that key, by another process or over a restart of the service too, the change is made
    once and the answer is the first one's. A key given again with another call raises IdempotencyMismatch.

    Every call raises a subclass of Problem when it is refused, ConnectionLost without an answer, and UnreadableReply
    for one that is not the service's; ValueError and TypeError for arguments that cannot be sent.
    """

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8700",
        *,
        timeout: float = 30.0,
        retries: Retries = DEFAULT,
        transport: httpx.AsyncBaseTransport | None = None,
        pin_epoch: bool = False,
    ) -> None:
        super().__init__(
            Connection(
                text(base_url, "base_url"),
                seconds(timeout, "timeout"),
                retries,
                transport,
                flag(pin_epoch, "pin_epoch"),
            )
        )

    def new_epoch(self) -> None:
        """After EpochMismatch: with `pin_epoch`, this client goes on in the epoch that its next call finds."""
        self._connection.new_epoch()

    async def aclose(self) -> None:
        """Close the connections of this loop; other loops close theirs. A call after it is a RuntimeError."""
        await self._connection.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
