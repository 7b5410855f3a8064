"""The consumers of roles.py with leases: rows of a killed worker go to another, and its ledger records each ack.

Two workers may do the same work one after the other; it counts once, and the second time changes nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from batchmeta import BatchMeta, LeaseLost

from .desk import INCLUDE, Desk, Want
from .ledger import Entry, Ledger, ledger_file
from .roles import (
    ACTOR,
    PROMPTS_AT_ONCE,
    RANK_READS,
    ROLLOUT,
    compute,
    roll_out,
    train,
    whole_groups,
)
from .samples import ANSWERS, COMPUTED, PROMPT_FIELDS, PROMPTS, Step

LEASE_S = 3.0
WAIT_S = 1.0
# A model in miniature: without it most kills would find their victim waiting, with nothing in its hands.
THINK_S = 0.2
Work = Callable[[BatchMeta], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Badge:
    """Who a worker is, over all its lives, and where its ledger lies."""

    worker: str
    ledgers: Path


async def leased_rollout(badge: Badge, desk: Desk, step: Step) -> None:
    """roles.rollout over leases."""
    want = Want(PROMPTS, PROMPT_FIELDS, 1, 1)

    async def work(batch: BatchMeta) -> None:
        await roll_out(desk, step, batch)

    with closing(Ledger(ledger_file(badge.ledgers, badge.worker))) as ledger:
        async with asyncio.TaskGroup() as group:
            for _ in range(PROMPTS_AT_ONCE):
                group.create_task(_consume(badge, desk, ledger, ROLLOUT, want, work))


async def leased_ranks(badge: Badge, desk: Desk, step: Step) -> None:
    """roles.ranks over leases."""
    want = Want(ANSWERS, RANK_READS, 1, step.answers)
    with closing(Ledger(ledger_file(badge.ledgers, badge.worker))) as ledger:
        async with asyncio.TaskGroup() as group:
            for task in COMPUTED:
                group.create_task(_consume(badge, desk, ledger, task, want, _computing(desk, task)))


def _computing(desk: Desk, task: str) -> Work:
    async def work(batch: BatchMeta) -> None:
        await compute(desk, task, batch)

    return work


async def leased_actor(badge: Badge, desk: Desk, step: Step) -> None:
    """roles.actor over leases."""

    async def work(batch: BatchMeta) -> None:
        train(desk, batch)

    with closing(Ledger(ledger_file(badge.ledgers, badge.worker))) as ledger:
        await _consume(badge, desk, ledger, ACTOR, whole_groups(step), work)


async def _consume(badge: Badge, desk: Desk, ledger: Ledger, task: str, want: Want, work: Work) -> None:
    async for lease in desk.client.claims(
        want.partition,
        task,
        want.fields,
        want.most,
        min_batch_size=want.least,
        wait_s=WAIT_S,
        sampler=want.sampler,
        include=INCLUDE,
        lease_s=LEASE_S,
        worker=badge.worker,
    ):
        claim = lease.claim
        rows, attempts = list(claim.batch.global_indexes), list(claim.attempts or ())
        entry = Entry(task, want.partition, str(claim.claim_id), str(claim.token), rows, attempts)
        try:
            async with lease as batch:
                await asyncio.sleep(THINK_S)
                await work(batch)
                ledger.ready(entry)
        except LeaseLost:
            ledger.void(entry.claim_id)
        else:
            ledger.acked(entry.claim_id)
            desk.advance(task, len(rows))
