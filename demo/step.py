"""One GRPO step from start to verdict: bring up what it runs on, conduct the processes, check the books, clear."""

import asyncio
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from .account import Account, Tally
from .clearing import CLEARING, clear
from .crew import Place, Role, assemble, conduct, crew
from .desk import Desk
from .memory import memory_storage
from .processes import StartFailed
from .report import Advance, bars, print_table, print_verdict
from .roles import ACTOR, ROLLOUT, TASKS, TRAINER, actor, ranks, rollout, trainer
from .samples import ANSWERS, COMPUTED, PROMPTS, Step
from .service import ServiceProcess, service_process
from .storage import StorageAddress, StorageName, connect
from .yuanrong_worker import yuanrong_storage

RANKS = 2


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line says. Without `url` the service is started and stopped by the demo."""

    step: Step
    workers: int
    storage: StorageName
    url: str | None
    has_chaos: bool = False


@contextmanager
def stage(settings: Settings, console: Console) -> Iterator[tuple[Place, ServiceProcess | None, Path]]:
    """Where the step runs, the service if the demo starts it, and a temporary folder."""
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="batchmeta-demo-")))
        # The service comes up while the storage does.
        service = None if settings.url else stack.enter_context(service_process(scratch / "service"))
        storage = stack.enter_context(_storage(settings.storage, scratch / "storage"))
        if service:
            service.wait_ready()
        url = service.url if service else str(settings.url)
        console.print(f"service {url}, storage {settings.storage} at {storage.host}:{storage.port}", highlight=False)
        yield Place(url, storage), service, scratch


def _storage(name: StorageName, folder: Path) -> AbstractContextManager[StorageAddress]:
    return memory_storage(folder) if name == "memory" else yuanrong_storage(folder)


def run_step(settings: Settings, console: Console) -> bool:
    """Run the step. Returns whether its account is right."""
    step = settings.step
    expected = {PROMPTS: step.prompts, ANSWERS: step.samples}
    roles = _roles(settings.workers)
    with stage(settings, console) as (place, _, _), crew(roles, place, step) as members:
        asyncio.run(declare(place, expected))
        assemble(members)
        with bars(console, _totals(step)) as advance:
            tallies = conduct(members, advance)
            tallies += asyncio.run(_finish(place, expected, advance))
        print_table(console, tallies)
        return print_verdict(console, Account(expected, dict(TASKS), tallies))


def _roles(workers: int) -> dict[str, Role]:
    roles: dict[str, Role] = {"trainer": trainer}
    roles |= {f"rollout worker {number}": rollout for number in range(workers)}
    roles |= {f"rank {number}": ranks for number in range(RANKS)}
    return roles | {"actor": actor}


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
