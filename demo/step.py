"""One GRPO step from start to verdict: bring up what it runs on, conduct the processes, check the books, clear."""

import asyncio
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.console import Console

from crew.account import Account, Tally
from crew.clearing import CLEARING, clear
from crew.desk import Desk
from crew.members import Place, Role, assemble, conduct, crew
from crew.processes import StartFailed
from crew.report import Advance, bars, print_table, print_verdict
from crew.service import ServiceProcess
from crew.stage import stage
from crew.storage import StorageName, connect

from .roles import ACTOR, ROLLOUT, TASKS, TRAINER, actor, ranks, rollout, trainer
from .samples import ANSWERS, COMPUTED, FIXED_SHAPE, PROMPTS, Step

RANKS = 2
# What the processes are forked from imports it, once for all of them.
PRELOAD = ("demo.roles", "demo.leased")


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line says. Without `url` the service is started and stopped by the demo."""

    step: Step
    workers: int
    storage: StorageName
    url: str | None
    has_chaos: bool = False


@contextmanager
def started(settings: Settings, console: Console) -> Iterator[tuple[Place, ServiceProcess | None, Path]]:
    """Where the step runs, the service if the demo starts it, and a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="batchmeta-demo-") as scratch:
        folder = Path(scratch)
        with stage(settings.storage, settings.url, folder, console) as (place, service):
            yield replace(place, fixed_shape=FIXED_SHAPE), service, folder


def run_step(settings: Settings, console: Console) -> bool:
    """Run the step. Returns whether its account is right."""
    step = settings.step
    expected = {PROMPTS: step.prompts, ANSWERS: step.samples}
    roles = _roles(settings)
    with started(settings, console) as (place, _, _), crew(roles, place, PRELOAD) as members:
        asyncio.run(declare(place, expected))
        assemble(members)
        with bars(console, _totals(step)) as advance:
            tallies = conduct(members, advance)
            tallies += asyncio.run(_finish(place, expected, advance))
        print_table(console, "One GRPO step", tallies)
        return print_verdict(console, Account(expected, dict(TASKS), tallies))


def _roles(settings: Settings) -> dict[str, Role]:
    step = settings.step
    roles: dict[str, Role] = {"trainer": partial(trainer, step=step)}
    roles |= {f"rollout worker {number}": partial(rollout, step=step) for number in range(settings.workers)}
    roles |= {f"rank {number}": ranks for number in range(RANKS)}
    return roles | {"actor": partial(actor, step=step)}


def _totals(step: Step) -> dict[str, int]:
    of_answers = dict.fromkeys((ROLLOUT, *COMPUTED, ACTOR), step.samples)
    return {TRAINER: step.prompts} | of_answers | {CLEARING: step.prompts + step.samples}


async def declare(place: Place, expected: Mapping[str, int], max_attempts: int | None = None) -> None:
    """Say how many samples will come: that is how the service knows when a task is done."""
    async with place.client() as client:
        for partition, samples in expected.items():
            declared = await client.put_partition(partition, expected_samples=samples, max_attempts=max_attempts)
            if declared.num_samples:
                raise StartFailed(f"partition {partition} of {place.url} holds samples of another run: delete it first")


async def _finish(place: Place, expected: Mapping[str, int], advance: Advance) -> list[Tally]:
    async with place.client() as client:
        desk = Desk(client, connect(place.storage), advance)
        for partition in expected:
            await clear(desk, partition)
        return list(desk.tallies.values())
