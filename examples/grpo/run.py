"""One run from start to verdict: bring up what it runs on, conduct the processes, check the account, clear."""

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.console import Console

from batchmeta import Consumption
from crew.clearing import clear
from crew.deaths import SERVICE, Deaths, draw
from crew.desk import Desk
from crew.files import SUFFIX
from crew.leased import Badge
from crew.members import Place, Role, assemble, crew
from crew.report import bars
from crew.service import ServiceProcess
from crew.stage import stage
from crew.storage import StorageName, connect
from crew.supervisor import Supervisor

from . import progress as versions
from .job import ACTOR, ANSWERS, FIXED_SHAPE, PROMPTS, REFERENCE, REWARD, ROLLOUT, WEIGHTS, Job
from .judging import reference, reward
from .outcome import Outcome, outcome
from .rollout import rollout
from .together import resume_together
from .trainer import TRAINER, trainer

# What the processes are forked from imports it, torch included, once for all of them.
PRELOAD = ("examples.grpo.trainer", "examples.grpo.judging")
ROLLOUTS = 2
PATIENCE_S = 120.0
# So that no sample is given up: a row is handed out again for each death of its holder, and there are few.
MAX_ATTEMPTS = 100
JUDGE = "judge"
DEATHS = {
    ROLLOUT: Deaths(3, (ROLLOUT,)),
    JUDGE: Deaths(2, (REFERENCE, REWARD)),
    TRAINER: Deaths(2, (ACTOR,)),
    SERVICE: Deaths(1, (ACTOR,)),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line says. `plot`: the file to write."""

    job: Job
    storage: StorageName
    has_chaos: bool
    is_resumed: bool
    plot: Path


def run(settings: Settings, console: Console) -> Outcome:
    """Run it all. Raises CrewFailed, StartFailed, StorageUnavailable, NothingToResume."""
    job = settings.job
    job.ledgers.mkdir(parents=True, exist_ok=True)
    with stage(settings.storage, None, job.folder, console) as (found, service):
        place = replace(found, patience_s=PATIENCE_S, fixed_shape=FIXED_SHAPE)
        begun = asyncio.run(_begin(place, settings))
        if settings.is_resumed:
            console.print(f"goes on from step {begun}", highlight=False)
        killed = _conduct(place, service, settings, begun, console)
        counts = asyncio.run(_end(place))
        left = _left(place, settings)
    trained, _ = versions.load(job.versions, job.steps)
    _draw(settings, trained, console)
    if killed:
        console.print(f"killed: {', '.join(killed)}", markup=False, highlight=False, soft_wrap=True)
    named = "openyuanrong" if settings.storage == "yuanrong" else settings.storage  # as the flag says it
    return outcome(job, named, trained, counts, killed, left)


async def _begin(place: Place, settings: Settings) -> int:
    """Make the partitions, or go back to where the run was; the version from which it goes on."""
    async with place.client() as client:
        if settings.is_resumed:
            return await resume_together(Desk(client, connect(place.storage), lambda *_: None), settings.job)
        for partition in (PROMPTS, ANSWERS, WEIGHTS):
            await client.put_partition(partition, max_attempts=MAX_ATTEMPTS)
    return 0


def _conduct(
    place: Place, service: ServiceProcess | None, settings: Settings, begun: int, console: Console
) -> list[str]:
    """Let the crew train; who was killed meanwhile."""
    if service is None:
        raise ValueError("a run starts a service of its own")
    job = settings.job
    roles, badges, kinds = _cast(job)
    steps = job.steps - begun
    samples = dict.fromkeys((REFERENCE, REWARD, ACTOR), steps * job.samples_per_step)
    totals = {ROLLOUT: steps * job.prompts} | samples
    deaths = draw(job.seed, totals, DEATHS) if settings.has_chaos else []
    with crew(roles, place, PRELOAD) as members:
        assemble(members)
        with bars(console, totals) as advance:
            driver = Supervisor(members, roles, badges, kinds, place, service, deaths, advance)
            driver.conduct()
    return driver.died


def _cast(job: Job) -> tuple[dict[str, Role], dict[str, Badge], dict[str, str]]:
    """Roles, badges and kinds by name."""
    kinds = {f"rollout {number}": ROLLOUT for number in range(ROLLOUTS)}
    kinds |= {"reference": JUDGE, "reward": JUDGE, TRAINER: TRAINER}
    lives = {"reference": reference, "reward": reward, TRAINER: trainer}
    badges = {name: Badge(name, job.ledgers) for name in kinds}
    roles: dict[str, Role] = {name: partial(lives.get(name, rollout), badges[name], job=job) for name in kinds}
    return roles, badges, kinds


async def _end(place: Place) -> Consumption:
    """The service's account of the actor's task; then everything is cleared."""
    async with place.client() as client:
        counts = await client.consumption(ANSWERS, ACTOR, counts_only=True)
        desk = Desk(client, connect(place.storage), lambda *_: None)
        for partition in (PROMPTS, ANSWERS, WEIGHTS):
            await clear(desk, partition)
    return counts


def _left(place: Place, settings: Settings) -> int:
    """Values that nobody deleted; openYuanrong does not tell."""
    return len(list(place.storage.folder.glob(f"*{SUFFIX}"))) if settings.storage == "files" else 0


def _draw(settings: Settings, trained: versions.Progress, console: Console) -> None:
    from .plot import plot  # matplotlib takes longer to load than all else here

    plot(settings.plot, settings.job, trained)
    console.print(f"plot: {settings.plot}", highlight=False, soft_wrap=True)
