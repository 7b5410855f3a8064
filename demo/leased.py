"""The consumers of roles.py with leases, as a chaos run needs them."""

import asyncio
from contextlib import closing

from batchmeta import BatchMeta
from crew.desk import Desk, Want
from crew.leased import Badge, Work, consume
from crew.ledger import Ledger

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

# A model in miniature: without it most kills would find their victim waiting, with nothing in its hands.
THINK_S = 0.2


async def leased_rollout(badge: Badge, desk: Desk, step: Step) -> None:
    """roles.rollout over leases."""
    want = Want(PROMPTS, PROMPT_FIELDS, 1, 1)

    async def work(batch: BatchMeta) -> None:
        await roll_out(desk, step, batch)

    with closing(Ledger(badge.file)) as ledger:
        async with asyncio.TaskGroup() as group:
            for _ in range(PROMPTS_AT_ONCE):
                group.create_task(consume(badge, desk, ledger, ROLLOUT, want, work, think_s=THINK_S))


async def leased_ranks(badge: Badge, desk: Desk, step: Step) -> None:
    """roles.ranks over leases."""
    want = Want(ANSWERS, RANK_READS, 1, step.answers)
    with closing(Ledger(badge.file)) as ledger:
        async with asyncio.TaskGroup() as group:
            for task in COMPUTED:
                work = _computing(desk, task)
                group.create_task(consume(badge, desk, ledger, task, want, work, think_s=THINK_S))


def _computing(desk: Desk, task: str) -> Work:
    async def work(batch: BatchMeta) -> None:
        await compute(desk, task, batch)

    return work


async def leased_actor(badge: Badge, desk: Desk, step: Step) -> None:
    """roles.actor over leases."""

    async def work(batch: BatchMeta) -> None:
        train(desk, batch)

    with closing(Ledger(badge.file)) as ledger:
        await consume(badge, desk, ledger, ACTOR, whole_groups(step), work, think_s=THINK_S)
