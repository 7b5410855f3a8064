"""One claimed batch as a context manager: its lease is extended while the body works, and settled at the body's end.

The end is seen by `async with`. A `for` loop could not see it: what its body raises never reaches the iterator.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import TracebackType
from typing import Literal

from ..arguments import maybe, wholes
from ..batch import BatchMeta
from ..errors import BatchmetaError, ClaimNotFound, LeaseLost
from ..values import Claim
from ..wire import replies
from .claims import LeaseCalls, accepted, rejected

# Of its length, after which a lease is extended: two of three extensions may fail.
EXTENDED_AFTER = 1 / 3


class AsyncLease:
    """A batch that this worker holds. Entered once; what happens at the end of the body is the account of its rows.

    No exception: every row that is still held is accepted. LeaseLost means that none is, because the lease had ended
    before: others may have the rows, so what the body made of them must not count.
    An exception: the rows still held are released at once, for others, and it goes on. The release counts as one of
    their `max_attempts`, because a sample may be what broke the body. It does not where the worker was told to stop:
    a cancellation, KeyboardInterrupt, SystemExit.
    `ack` in the body settles rows before the end. A forked child that leaves the body settles nothing.

    The extensions run in the body's event loop: a body that computes for long without awaiting anything belongs into
    `asyncio.to_thread`, or use `Client`, whose extensions run in a thread of their own.
    """

    def __init__(
        self,
        claim: Claim,
        lease_s: float,
        *,
        calls: LeaseCalls,
        hasty: LeaseCalls,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        """`calls` wait out a restart of the service; `hasty` ones, for the way out of a failed body, do not."""
        if claim.claim_id is None or claim.token is None:
            raise ValueError("the claim has no lease")
        self.claim = claim
        self._id, self._token, self._lease_s = claim.claim_id, claim.token, lease_s
        self._calls, self._hasty, self._sleep = calls, hasty, sleep
        self._unsettled = list(claim.batch.global_indexes)
        self._open = claim.batch.size
        self._lost = False
        self._extending: asyncio.Task[None] | None = None
        self._pid = 0

    @property
    def batch(self) -> BatchMeta:
        """The rows; also what `async with` gives."""
        return self.claim.batch

    @property
    def lost(self) -> bool:
        """An extension was refused: the lease has ended, and the body may as well stop. Its end is LeaseLost."""
        return self._lost and self._open > 0

    async def ack(
        self,
        *,
        accept: Iterable[int] | Literal["all"] | None = None,
        release: Iterable[int] | None = None,
        reject: Mapping[int, str] | None = None,
        counts: bool = False,
    ) -> replies.Acked:
        """Settle rows now, as `client.ack` does; the end of the body settles the others. Raises LeaseLost."""
        released = maybe(wholes, release, "release") or []
        return await self._settle(self._calls, accepted(accept), released, rejected(reject), counts=counts)

    async def __aenter__(self) -> BatchMeta:
        if self._pid:
            raise RuntimeError("a lease is entered once")
        self._pid = os.getpid()
        self._extending = asyncio.create_task(self._extend())
        return self.batch

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if os.getpid() != self._pid:
            return
        if self._extending is not None:
            self._extending.cancel()
            await asyncio.gather(self._extending, return_exceptions=True)
        if error is None:
            await self._settle_the_rest(lambda rows: self._settle(self._calls, rows, [], {}))
            return
        try:
            counts = isinstance(error, Exception)
            await self._settle_the_rest(lambda rows: self._settle(self._hasty, None, rows, {}, counts=counts))
        except BatchmetaError as failed:
            error.add_note(f"batchmeta: claim {self._id} was not released, its lease runs out: {failed}")

    async def _settle(
        self,
        calls: LeaseCalls,
        accept: Iterable[int] | Literal["all"] | None,
        release: list[int],
        reject: dict[int, str],
        *,
        counts: bool = False,
    ) -> replies.Acked:
        taken = accept if accept is None or accept == "all" else list(accept)
        acked = await calls.ack(
            self._id, self._token, accept=taken, release=release or None, reject=reject, counts=counts
        )
        self._open = acked.open
        named = {*(taken if isinstance(taken, list) else ()), *release, *reject}
        self._unsettled = [] if taken == "all" or not named else [row for row in self._unsettled if row not in named]
        return acked

    async def _settle_the_rest(self, settle: Callable[[list[int]], Awaitable[object]]) -> None:
        """Rows deleted meanwhile are nobody's any more: the others are settled. Raises LeaseLost if there are none."""
        while self._unsettled:
            try:
                await settle(self._unsettled)
                return
            except LeaseLost as lost:
                gone = set(lost.global_indexes)
                held = [row for row in self._unsettled if row not in gone]
                if len(held) in (0, len(self._unsettled)):
                    raise
                self._unsettled = held

    async def _extend(self) -> None:
        while self._open:
            await self._sleep(self._lease_s * EXTENDED_AFTER)
            try:
                await self._calls.extend(self._id, self._token, self._lease_s)
            except (LeaseLost, ClaimNotFound):
                self._lost = True
                return
            except BatchmetaError:
                continue  # the next may get through, and whether the lease held is for the ack to say
