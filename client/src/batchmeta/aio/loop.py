"""`claims()`: a worker's life as a loop over leases. What happens to one of them is in lease.py."""

import warnings
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, cast

from ..arguments import real, whole
from ..calls import condition_list, names
from ..connection import Connection
from ..retry_policies import Hasty, Patient
from ..values import Claim
from ..wire import requests
from ..wire.requests import Include
from .claims import LeaseCalls
from .consuming import ConsumingCalls
from .lease import AsyncLease

SamplerOf = Callable[[int], requests.Sampler | Mapping[str, Any]]


class StrandedWarning(UserWarning):
    """A loop has ended, and left samples that its sampler and `where` could never hand out."""


class _Calls(ConsumingCalls, LeaseCalls):
    """What a loop and its leases call."""


class AsyncClaims:
    """Claims one batch after the other, and waits for each. Ends when the task is done, or no row is left for it.

    `stranded`: rows that are left of a sealed partition after the loop has ended, because its sampler and `where` could
    never hand them out. Where there are some, a warning says once which reasons hold them back.
    """

    def __init__(self, claim: Callable[[int], Awaitable[Claim]], leased: Callable[[Claim], AsyncLease]) -> None:
        self._claim, self._leased, self._number = claim, leased, 0
        self.stranded = 0
        self._left: Claim | None = None
        self._has_told = False

    def __aiter__(self) -> "AsyncClaims":
        return self

    async def __anext__(self) -> AsyncLease:
        lease = await self.next_lease()
        if lease is None:
            self.tell(stacklevel=3)
            raise StopAsyncIteration
        return lease

    async def next_lease(self) -> AsyncLease | None:
        """The next batch, however long it takes to come; None when no more will."""
        while True:
            claim = await self._claim(self._number)
            if claim:
                self._number += 1
                return self._leased(claim)
            if claim.done:
                self._left, self.stranded = claim, claim.stranded
                return None

    def tell(self, stacklevel: int) -> None:
        """After the end: warn, once, of rows that are left."""
        if not self.stranded or self._left is None or self._has_told:
            return
        self._has_told = True
        reasons = ", ".join(f"{blocking.reason}: {blocking.count}" for blocking in self._left.blocking)
        text = (
            f"claims() of {self._left.partition_id!r} ended, and {self.stranded} samples are left that it can never get"
        )
        warnings.warn(f"{text} ({reasons})", StrandedWarning, stacklevel=stacklevel)


class ClaimLoops(ConsumingCalls, LeaseCalls):
    """The loop, for clients: it needs their connection and their retries."""

    _connection: Connection

    def claims(
        self,
        partition_id: str,
        task: str,
        fields: Iterable[str],
        batch_size: int,
        *,
        lease_s: float = 600.0,
        worker: str | None = None,
        min_batch_size: int | None = None,
        wait_s: float = 30.0,
        sampler: requests.Sampler | Mapping[str, Any] | SamplerOf | None = None,
        where: Iterable[requests.Condition | Mapping[str, Any]] | None = None,
        include: Iterable[Include] | None = None,
        compact: bool = False,
        expand: bool = False,
    ) -> AsyncClaims:
        """Batch after batch with a lease, until the task is done:

            async for lease in client.claims("train@0", "actor", ["ids"], 16, worker="actor-0"):
                async with lease as batch:
                    train(batch)

        The end of the inner body accepts the rows, an exception releases them (see AsyncLease for both). While it
        works the lease is extended to `lease_s` seconds again and again; if the worker dies, its rows go out again
        after at most that time, or at once when somebody calls `release_worker(worker)`. LeaseLost leaves the loop
        unless it is caught around the inner `with`: the body took too long to be heard of, and others have the rows.

        Waits in long polls of `wait_s` seconds (more than 0, at most 60), after each of which `min_batch_size` rows
        are enough. Ends when the task is done: the partition is sealed, or all expected samples are there, and every
        row is consumed or dead; so a worker that has nothing to do stays while others may yet let go of rows. Ends too
        when all that is left of a sealed partition could never go out to it (incomplete groups, rows without a weight,
        or that fail `where`): then `stranded` of the loop counts them, and a StrandedWarning says why.
        `sampler` may be a function that gives the sampler for claim 0, 1, 2, ... of this loop.
        All calls are sent again for `retries.within_s` seconds, so a restart of the service is only a pause; nor
        does a gateway that cuts a wait short end the loop. Raises PartitionCleared, InvalidRequest, ConnectionLost.
        """
        wait_s, lease_s = real(wait_s, "wait_s"), real(lease_s, "lease_s")
        batch_size = whole(batch_size, "batch_size")
        asked = names(fields, "fields")
        if not wait_s > 0:
            raise ValueError("wait_s must be more than 0: the loop waits for its batches")
        passing = condition_list(where)
        included = cast("list[Include] | None", names(include, "include"))
        calls = _Calls(Patient(self._connection))

        async def claim(number: int) -> Claim:
            return await calls.claim(
                partition_id,
                task,
                asked,
                batch_size,
                min_batch_size=min_batch_size,
                wait_s=wait_s,
                sampler=sampler(number) if callable(sampler) else sampler,
                where=passing,
                include=included,
                compact=compact,
                expand=expand,
                lease_s=lease_s,
                worker=worker,
            )

        def leased(held: Claim) -> AsyncLease:
            return AsyncLease(
                held, lease_s, calls=calls, hasty=_Calls(Hasty(self._connection)), sleep=self._connection.retries.sleep
            )

        return AsyncClaims(claim, leased)
