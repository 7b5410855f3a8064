"""Work under a lease: rows of a killed worker go to another, and the worker's ledger records each ack.

Two workers may do the same work one after the other; it counts once, and the second time changes nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from batchmeta import BatchMeta, Claim, LeaseLost

from .desk import INCLUDE, Desk, Want
from .ledger import Entry, Ledger, ledger_file

LEASE_S = 3.0
WAIT_S = 1.0
Work = Callable[[BatchMeta], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Badge:
    """Who a worker is, over all its lives, and where its ledger lies."""

    worker: str
    ledgers: Path

    @property
    def file(self) -> Path:
        """Its ledger's file."""
        return ledger_file(self.ledgers, self.worker)


async def consume(
    badge: Badge, desk: Desk, ledger: Ledger, task: str, want: Want, work: Work, *, think_s: float = 0.0
) -> None:
    """Batch after batch until the task is done. `think_s`: what each batch takes besides its work."""
    async for lease in desk.client.claims(
        want.partition,
        task,
        want.fields,
        want.most,
        min_batch_size=want.least,
        wait_s=WAIT_S,
        sampler=want.sampler,
        where=want.where,
        include=INCLUDE,
        lease_s=LEASE_S,
        worker=badge.worker,
    ):
        entry = _entry(task, lease.claim)
        try:
            async with lease as batch:
                await asyncio.sleep(think_s)
                await work(batch)
                ledger.ready(entry)
        except LeaseLost:
            ledger.void(entry.claim_id)
        else:
            ledger.acked(entry.claim_id)
            desk.advance(task, len(entry.rows))


async def take(badge: Badge, desk: Desk, task: str, want: Want, wait_s: float, lease_s: float = LEASE_S) -> Claim:
    """One claim under a lease, waited for; for a worker that asks for something else each time."""
    return await desk.client.claim(
        want.partition,
        task,
        want.fields,
        want.most,
        min_batch_size=want.least,
        wait_s=wait_s,
        sampler=want.sampler,
        where=want.where,
        include=INCLUDE,
        lease_s=lease_s,
        worker=badge.worker,
    )


async def settle(desk: Desk, ledger: Ledger, task: str, claim: Claim, work: Work) -> bool:
    """Work on what `take` gave and ack it; False if its lease had ended, so that the work is void.

    The lease is not extended: the work must be shorter.
    """
    entry = _entry(task, claim)
    await work(claim.batch)
    ledger.ready(entry)
    try:
        await desk.client.ack(entry.claim_id, entry.token)
    except LeaseLost:
        ledger.void(entry.claim_id)
        return False
    ledger.acked(entry.claim_id)
    desk.advance(task, len(entry.rows))
    return True


def _entry(task: str, claim: Claim) -> Entry:
    rows, attempts = list(claim.batch.global_indexes), list(claim.attempts or ())
    return Entry(task, claim.partition_id, str(claim.claim_id), str(claim.token), rows, attempts)
