"""`--chaos`: a step whose processes are killed, and its account: each task must do each of its samples exactly once."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console

from batchmeta import Consumption
from crew.account import Account, Tally, note
from crew.clearing import CLEARING, clear
from crew.deaths import SERVICE, Deaths, draw
from crew.desk import Desk
from crew.leased import Badge
from crew.ledger import Books, Entry, read
from crew.members import Place, Role, assemble, crew
from crew.report import Advance, bars, print_verdict
from crew.storage import cell_name, connect
from crew.supervisor import Supervisor

from .leased import leased_actor, leased_ranks, leased_rollout
from .roles import ACTOR, ROLLOUT, TASKS, TRAINED, TRAINER, trainer
from .samples import ANSWERS, COMPUTED, PROMPT_FIELDS, PROMPTS, Step
from .step import PRELOAD, RANKS, Settings, declare, started

PATIENCE_S = 120.0
# So that no sample is given up: a row is handed out again for each death of its holder, and there are eight.
MAX_ATTEMPTS = 100
RANK = "rank"
DEATHS = {
    ROLLOUT: Deaths(3, (ROLLOUT,)),
    RANK: Deaths(2, tuple(COMPUTED)),
    ACTOR: Deaths(2, (ACTOR,)),
    SERVICE: Deaths(1, (ROLLOUT, *COMPUTED, ACTOR)),
}
FIELDS = {PROMPTS: PROMPT_FIELDS, ANSWERS: TRAINED}


def run_chaos(settings: Settings, console: Console) -> bool:
    """Run it all; whether the books add up."""
    step = settings.step
    expected = {PROMPTS: step.prompts, ANSWERS: step.samples}
    totals = {TRAINER: step.prompts, ROLLOUT: step.prompts} | dict.fromkeys((*COMPUTED, ACTOR), step.samples)
    with started(settings, console) as (found, service, folder):
        if service is None:
            raise ValueError("chaos needs a service of its own")
        place = replace(found, patience_s=PATIENCE_S)
        roles, badges, kinds = _cast(settings.workers, step, folder)
        with crew(roles, place, PRELOAD) as members:
            asyncio.run(declare(place, expected, MAX_ATTEMPTS))
            assemble(members)
            with bars(console, totals | {CLEARING: step.prompts + step.samples}) as advance:
                deaths = draw(step.seed, totals, DEATHS)
                driver = Supervisor(members, roles, badges, kinds, place, service, deaths, advance)
                driver.conduct()
                books = [read(badge.file) for badge in badges.values()]
                put, faults = asyncio.run(_told_by_the_service(place, expected))
                cleared = asyncio.run(_clear(place, expected, advance))
        put.checked = driver.reads
        _print_story(console, driver, books)
        account = Account(expected, dict(TASKS), [put, *cleared, *_tallies(books)])
        adds_up = print_verdict(console, account, [*faults, *_doubts(books)])
        if adds_up:
            console.print(f"[bold green]Each of {step.samples} samples was trained exactly once.[/]")
        return adds_up


def _cast(workers: int, step: Step, folder: Path) -> tuple[dict[str, Role], dict[str, Badge], dict[str, str]]:
    """Roles, badges and kinds by name; the trainer has no badge, for it does not die."""
    kinds = {f"rollout worker {number}": ROLLOUT for number in range(workers)}
    kinds |= {f"rank {number}": RANK for number in range(RANKS)} | {"actor": ACTOR}
    badges = {name: Badge(name, folder) for name in kinds}
    lives = {ROLLOUT: leased_rollout, RANK: leased_ranks, ACTOR: leased_actor}
    roles: dict[str, Role] = {"trainer": partial(trainer, step=step)}
    roles |= {name: partial(lives[kind], badges[name], step=step) for name, kind in kinds.items()}
    return roles, badges, kinds


def _tallies(books: list[Books]) -> Iterator[Tally]:
    """The work that the ledgers record, as tallies."""
    for book in books:
        for entry in book.acked:
            tally = Tally(entry.task)
            note(tally.consumed, entry.partition, entry.rows)
            yield tally


async def _told_by_the_service(place: Place, expected: Mapping[str, int]) -> tuple[Tally, list[str]]:
    """The state of the service as one tally, and the faults in the service's own account of it."""
    put, faults = Tally("put"), []
    async with place.client() as client:
        for partition in expected:
            batch = await client.read(partition, fields=FIELDS[partition])
            rows = list(batch.global_indexes)
            note(put.put, partition, rows)
            put.stored += [cell_name(index, field) for field in FIELDS[partition] for index in rows]
            if not batch.is_ready or len(set(batch.keys or ())) != len(rows):
                faults.append(f"{partition}: samples that are not ready, or a key twice")
            for task in TASKS[partition]:
                faults += _unfinished(await client.consumption(partition, task), len(rows), f"{partition}: {task}")
    return put, faults


def _unfinished(found: Consumption, rows: int, what: str) -> Iterator[str]:
    counts = (found.consumed, found.total, found.leased, found.dead, found.done)
    if counts != (rows, rows, 0, 0, True) or 0 in (found.consumption_status or ()):
        yield f"{what}: (consumed, total, leased, dead, done) = {counts}, {rows} samples"


def _doubts(books: list[Books]) -> Iterator[str]:
    for book in books:
        for entry in book.in_doubt:
            yield f"{entry.partition}: {entry.task} was never answered about {len(entry.rows)} samples"


async def _clear(place: Place, expected: Mapping[str, int], advance: Advance) -> list[Tally]:
    async with place.client() as client:
        desk = Desk(client, connect(place.storage), advance)
        for partition in expected:
            await clear(desk, partition)
        return list(desk.tallies.values())


def _print_story(console: Console, driver: Supervisor, books: list[Books]) -> None:
    """Print which processes died, and what happened to the samples they held."""
    console.print(f"killed: {', '.join(driver.died)}", markup=False, highlight=False, soft_wrap=True)
    acked = [entry for book in books for entry in book.acked]
    again = Counter({task: 0 for tasks in TASKS.values() for task in tasks})
    for entry in acked:
        again[entry.task] += _handed_out_again(entry)
    words = ", ".join(f"{task} {count}" for task, count in again.items())
    void = sum(len(book.void) for book in books)
    console.print(f"samples handed out more than once: {words}", highlight=False, soft_wrap=True)
    acks = f"acks: {len(acked)} accepted, {driver.doubts} of them only when said again for the dead, {void} void"
    console.print(acks, highlight=False, soft_wrap=True)


def _handed_out_again(entry: Entry) -> int:
    return sum(attempts > 1 for attempts in entry.attempts)
