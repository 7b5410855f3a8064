"""The blocking twins of aio/lease.py and aio/loop.py: the same lease, its coroutines run in the client's thread."""

from collections.abc import Coroutine, Iterable, Mapping
from types import TracebackType
from typing import Any, Literal, Protocol, TypeVar

from .aio.lease import AsyncLease
from .aio.loop import AsyncClaims
from .batch import BatchMeta
from .values import Claim
from .wire import replies

T = TypeVar("T")


class Runs(Protocol):
    """Waits for the result of a coroutine that runs elsewhere."""

    def __call__(self, work: Coroutine[Any, Any, T]) -> T: ...


class Lease:
    """A batch that this worker holds. Entered once; what happens at the end of the body is the account of its rows.

    No exception: every row that is still held is accepted. LeaseLost means that none is, because the lease had ended
    before: others may have the rows, so what the body made of them must not count.
    An exception: the rows still held are released at once, for others, and it goes on. The release counts as one of
    their `max_attempts`, because a sample may be what broke the body. It does not where the worker was told to stop:
    KeyboardInterrupt, SystemExit.
    `ack` in the body settles rows before the end. A forked child that leaves the body settles nothing.

    Meanwhile the lease is extended by the client's own thread.
    """

    def __init__(self, lease: AsyncLease, run: Runs) -> None:
        self._lease, self._run = lease, run

    @property
    def claim(self) -> Claim:
        """Its ids, token and attempts."""
        return self._lease.claim

    @property
    def batch(self) -> BatchMeta:
        """The rows; also what `with` gives."""
        return self._lease.batch

    @property
    def lost(self) -> bool:
        """An extension was refused: the lease has ended, and the body may as well stop. Its end is LeaseLost."""
        return self._lease.lost

    def ack(
        self,
        *,
        accept: Iterable[int] | Literal["all"] | None = None,
        release: Iterable[int] | None = None,
        reject: Mapping[int, str] | None = None,
        counts: bool = False,
    ) -> replies.Acked:
        """Settle rows now, as `client.ack` does; the end of the body settles the others. Raises LeaseLost."""
        return self._run(self._lease.ack(accept=accept, release=release, reject=reject, counts=counts))

    def __enter__(self) -> BatchMeta:
        return self._run(self._lease.__aenter__())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(self._lease.__aexit__(kind, error, trace))


class Claims:
    """Claims one batch after the other, and waits for each. Ends when the task is done, or no row is left for it."""

    def __init__(self, claims: AsyncClaims, run: Runs) -> None:
        self._claims, self._run = claims, run

    @property
    def stranded(self) -> int:
        """Rows that the loop could never get, after its end: see AsyncClaims."""
        return self._claims.stranded

    def __iter__(self) -> "Claims":
        return self

    def __next__(self) -> Lease:
        lease = self._run(self._claims.next_lease())
        if lease is None:
            self._claims.tell(stacklevel=3)
            raise StopIteration
        return Lease(lease, self._run)
