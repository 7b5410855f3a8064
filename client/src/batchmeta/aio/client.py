"""`AsyncClient`: all calls in one object, its making and its closing."""

from types import TracebackType

import httpx

from ..connection import Connection
from ..retries import DEFAULT, Retries
from .claims import LeaseCalls
from .consuming import ConsumingCalls
from .partitions import PartitionCalls
from .reading import ReadingCalls
from .writing import WritingCalls


class AsyncClient(PartitionCalls, WritingCalls, ReadingCalls, ConsumingCalls, LeaseCalls):
    """The service, one method per call. Keeps connections open; belongs to the event loop of its first call.

    `timeout`: seconds without progress after which a call is ConnectionLost. `retries`: GET, PUT, DELETE, `produce`,
    `insert` by keys and the calls that only read are sent again after a lost connection and a retryable 429 or 503;
    all others never are. `transport`: another way to the service, e.g. httpx.MockTransport in a test; it is yours to
    share over forks or not. After a fork (of a DataLoader's worker, say) the child opens connections of its own.

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
    ) -> None:
        super().__init__(Connection(base_url, timeout, retries, transport))

    async def aclose(self) -> None:
        """Close the connections. A call after it is a RuntimeError."""
        await self._connection.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
