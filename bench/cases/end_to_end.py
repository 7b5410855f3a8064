"""A worker's call to its decoded batch meta, every column touched: our client over HTTP against theirs over ZMQ."""

from functools import partial
from typing import Any

from ..child import Child
from ..outcome import Case, Line, Outcome, at_least, ms, tails, unmeasured
from ..place import SEED, Place
from ..profile import Backend
from ..turns import Runs, distribution, in_turns, ratio
from ..worker import PlainWorker, Worker

LEAST: dict[tuple[int, Backend], float] = {
    (1, "const"): 1.2,
    (512, "const"): 8,
    (1024, "const"): 12,
    (1024, "distinct"): 5,
}
PLAIN_LEAST = 6
OURS, PLAIN = "ours", "plain httpx"


def run(place: Place) -> Outcome:
    """All sizes with constant backend meta, the largest with distinct cells too, and by plain httpx."""
    lines: list[Line] = []
    data: dict[str, Any] = {"by_rows": {}}
    with place.server("end_to_end") as ours, Child(Worker, ours.url) as worker, Child(PlainWorker, ours.url) as plain:
        for rows, backend in _buckets(place):
            partition = f"p_{rows}_{backend}"
            ours.load(partition, place.profile(rows, backend))
            sides = {OURS: partial(worker.do, "read", partition)}
            if (rows, backend) == (place.scale.rows, "const"):
                sides[PLAIN] = partial(plain.do, "read", partition)
            runs = _measure(place, rows, backend, sides)
            lines += _lines(place, rows, backend, runs)
            _keep(data, place, rows, backend, runs)
    return Outcome(lines, data)


def _buckets(place: Place) -> list[tuple[int, Backend]]:
    return [*((rows, "const") for rows in place.scale.sizes), (place.scale.rows, "distinct")]


def _measure(place: Place, rows: int, backend: Backend, sides: dict[str, partial[list[float]]]) -> dict[str, Runs]:
    calls = place.scale.tail_calls
    peer = place.loaded(SEED, rows, backend)
    if peer is not None:
        sides = sides | {SEED: partial(peer.time, "end_to_end", rows)}
    for side in sides.values():
        side(2)
    timed = {name: partial(side, calls) for name, side in sides.items()}
    return in_turns(place.rounds(f"{rows} rows, {backend} backend meta"), timed)


def _keep(data: dict[str, Any], place: Place, rows: int, backend: Backend, runs: dict[str, Runs]) -> None:
    if rows == place.scale.rows:
        data[backend] = _figures(runs)
    if backend == "const":
        data["by_rows"][str(rows)] = {side: found.seconds() for side, found in runs.items()}


def _figures(runs: dict[str, Runs]) -> dict[str, Any]:
    return {side: found.seconds() | {"distribution": distribution(found.values)} for side, found in runs.items()}


def _lines(place: Place, rows: int, backend: Backend, runs: dict[str, Runs]) -> list[Line]:
    row = f"client call to decoded batch meta, {rows:,} rows, {backend}"
    found = [_line(place, row, LEAST.get((rows, backend)), runs, OURS)]
    if PLAIN in runs:
        found.append(_line(place, f"the same by {PLAIN}", PLAIN_LEAST, runs, PLAIN))
    return found + (tails({row: runs[OURS]}) if place.scale.is_judged else [])


def _line(place: Place, row: str, least: float | None, runs: dict[str, Runs], side: str) -> Line:
    ours = ms(runs[side])
    if not place.scale.is_judged:
        return Line(row, ours=ours)
    if SEED not in runs:
        return unmeasured(row, f">= {least:g} x" if least else "-", place.lacks(SEED))
    return at_least(row, least, ratio(runs[SEED], runs[side]), ms(runs[SEED]), ours)


CASE = Case("end_to_end", "client call to decoded batch meta in the worker, over the wire", run, compares=True)
