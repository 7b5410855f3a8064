"""The hand-over to the engine's thread and back: alone, under load, and the pauses of the garbage collector."""

import asyncio
import os
import signal
from collections import Counter
from pathlib import Path
from statistics import mean
from typing import Any

from core.engine import Engine
from core.journal import Appended, EntryId, FileJournal
from core.operations.produce import RowWrite, insert
from core.reading.batch import View
from core.runtime.executor import Executor

from .. import wrk
from ..child import Child
from ..engines import new_engine
from ..outcome import Case, Line, Outcome, ms, per_s
from ..place import Place
from ..server import seen, ticking
from ..turns import Runs, in_turns
from .puts import AT_ONCE, ROWS, body_file


class CountedJournal(FileJournal):
    """Each append is a drain that changed something: how many calls shared it is `calls since the last one`."""

    appends = 0

    def append(self, expected_last: EntryId, payload: bytes) -> Appended:
        self.appends += 1
        return super().append(expected_last, payload)


def nothing(_: Engine) -> None:
    """The cheapest operation."""


def add_row(engine: Engine) -> None:
    """A small change, so that the drain is journaled."""
    insert(engine, "p", 1, RowWrite(), View())


def same(result: object) -> object:
    """Renders a result as it is."""
    return result


class Hop:
    """An executor with a journal on disk, and no HTTP."""

    def __init__(self, folder: Path) -> None:
        self.runner = asyncio.Runner()
        self.journal = CountedJournal(folder)
        self.journal.open()
        self.executor = Executor(new_engine(), self.journal, self._failed)
        self.runner.run(self._start())

    def idle(self, calls: int) -> list[float]:
        """Seconds of calls that do nothing, one after the other."""

        async def many() -> list[float]:
            took, clock = [], asyncio.get_running_loop().time
            for _ in range(calls):
                began = clock()
                await self.executor.call(nothing, same)
                took.append(clock() - began)
            return took

        return self.runner.run(many())

    def busy(self, calls: int, at_once: int) -> tuple[float, float]:
        """(calls per second, calls per journal append) of small changes, `at_once` in flight."""

        async def again() -> None:
            for _ in range(calls // at_once):
                await self.executor.call(add_row, same)

        async def all_of_them() -> float:
            clock = asyncio.get_running_loop().time
            began = clock()
            await asyncio.gather(*(again() for _ in range(at_once)))
            return clock() - began

        before = self.journal.appends
        took = self.runner.run(all_of_them())
        done = calls // at_once * at_once
        return done / took, done / max(1, self.journal.appends - before)

    async def _start(self) -> None:
        self.executor.start()
        while self.executor.reading.reason is not None:  # noqa: ASYNC110  (it tells nobody when it is ready)
            await asyncio.sleep(0.01)

    def _failed(self, reason: str) -> None:
        raise RuntimeError(reason)


def run(place: Place) -> Outcome:
    """Measure; no target: the figures say what a call costs before it does anything."""
    calls, many = place.scale.calls * 10, place.scale.calls * 100
    drains: list[float] = []
    with Child(Hop, place.folder("executor") / "journal") as child:

        def busy() -> list[float]:
            rate, drain = child.do("busy", max(AT_ONCE, many), AT_ONCE)
            drains.append(drain)
            return [rate]

        runs = in_turns(place.rounds("hops"), {"idle": lambda: child.do("idle", calls), "busy": busy})
    lines, data = _hops(runs, drains)
    more, pauses = _pauses(place)
    return Outcome([*lines, more], data | pauses)


def _hops(runs: dict[str, Runs], drains: list[float]) -> tuple[list[Line], dict[str, Any]]:
    lines = [
        Line("a call into the engine's thread and back, alone", ours=ms(runs["idle"])),
        Line(
            f"small changes, {AT_ONCE} at once, durable",
            ours=f"{per_s(runs['busy'])}, {mean(drains):.0f} to a journal append",
        ),
    ]
    data = {
        "idle": runs["idle"].seconds(),
        "busy": runs["busy"].rate(),
        "calls_per_append": [round(d, 1) for d in drains],
    }
    return lines, data


def _pauses(place: Place) -> tuple[Line, dict[str, Any]]:
    row, folder = "pauses of the garbage collector under puts", place.folder("pauses")
    try:
        wrk.require()
    except wrk.WrkMissing as error:
        return Line(row, note=f"not measured: {error}"), {}
    place.tell("puts, with an eye on the garbage collector")
    with ticking(folder) as ours:
        os.kill(ours.process.pid, signal.SIGUSR1)
        body = body_file(place, place.profile(ROWS))
        done = wrk.load("put", ours.url, place.scale.seconds, AT_ONCE, "/v1/partitions/p/production", body, "k")
    stretch = seen(folder)[-1]
    by_generation = {str(name): found for name, found in sorted(Counter(stretch["generations"]).items())}
    longest = max(stretch["pauses"], default=0.0) * 1e3
    data = {"puts": done["requests"], "collections": by_generation, "longest_ms": round(longest, 3)}
    text = f"{sum(by_generation.values())} in {done['requests']:,} puts, longest {longest:.2f} ms"
    return Line(row, ours=text), {"gc": data}


CASE = Case("executor", "the hop into the engine's thread, and the garbage collector", run)
