"""A worker's call to its decoded batch meta, every column touched: our client over HTTP against theirs over ZMQ."""

from functools import partial
from typing import Any

from ..child import Child
from ..outcome import Case, Line, Outcome, at_least, at_most, ms, unmeasured
from ..place import SEED, Place
from ..profile import Backend
from ..turns import Runs, distribution, in_turns, ratio
from ..worker import Worker

BACKENDS: tuple[Backend, ...] = ("const", "distinct")
LEAST, TAIL = 5, 3
OURS = "ours"


def run(place: Place) -> Outcome:
    """The bucket that is judged, and smaller ones for the plot."""
    lines: list[Line] = []
    data: dict[str, Any] = {"by_rows": {}}
    with place.server("end_to_end") as ours, Child(Worker, ours.url) as worker:
        for rows in place.scale.sizes:
            for backend in BACKENDS if rows == place.scale.rows else BACKENDS[:1]:
                partition = f"p_{rows}_{backend}"
                ours.load(partition, place.profile(rows, backend))
                runs = _measure(place, rows, backend, partial(worker.do, "read", partition))
                if rows == place.scale.rows:
                    lines += _lines(place, rows, backend, runs)
                    data[backend] = _figures(runs)
                if backend == BACKENDS[0]:
                    data["by_rows"][str(rows)] = {side: found.seconds() for side, found in runs.items()}
    return Outcome(lines, data)


def _measure(place: Place, rows: int, backend: Backend, ours: partial[list[float]]) -> dict[str, Runs]:
    calls = place.scale.tail_calls if rows == place.scale.rows else place.scale.calls
    peer = place.loaded(SEED, rows, backend)
    ours(2)
    sides = {OURS: partial(ours, calls)}
    if peer is not None:
        peer.time("end_to_end", rows, 2)
        sides[SEED] = partial(peer.time, "end_to_end", rows, calls)
    return in_turns(place.rounds(f"{rows} rows, {backend} backend meta"), sides)


def _figures(runs: dict[str, Runs]) -> dict[str, Any]:
    return {side: found.seconds() | {"distribution": distribution(found.values)} for side, found in runs.items()}


def _lines(place: Place, rows: int, backend: Backend, runs: dict[str, Runs]) -> list[Line]:
    row, ours = f"client call to decoded batch meta, {rows:,} rows, {backend}", runs[OURS]
    tail = ours.at(99) / ours.median
    if not place.scale.is_judged:
        return [Line(row, ours=ms(ours))]
    judged = at_most(f"{row}: p99 over median", TAIL, tail, ms(ours))
    if SEED not in runs:
        return [unmeasured(row, f">= {LEAST} x", place.lacks(SEED)), judged]
    # The table's row is of the profile's own, constant backend meta; of distinct cells most is a Python dict for each.
    least = LEAST if backend == BACKENDS[0] else None
    return [at_least(row, least, ratio(runs[SEED], ours), ms(runs[SEED]), ms(ours)), judged]


CASE = Case("end_to_end", "client call to decoded batch meta in the worker, over the wire", run, compares=True)
