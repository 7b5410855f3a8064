"""Whether puts pay for 200 claims that wait in their own partition, each of its own task or with its own `where`.

Each round has a partition of its own: puts with nobody waiting, beside the claims, and after those have left. Every row
is ready for every task, and a put makes one more; what the claims wait for are more rows than there will be.
"""

import json
from collections.abc import Callable
from typing import Any

from ..child import Child
from ..outcome import Case, Line, Outcome, at_most, ms, tails
from ..place import Place
from ..profile import CLAIMED, Json
from ..server import CHUNK, Server
from ..turns import Runs, ratio
from ..worker import Worker
from .parked import WAITING, parked, request
from .puts import one_row_bodies

BESIDE, AFTER = 1.5, 1.1
WAIT_S, MOST_S = 60, 10  # puts must end before the claims do, however slow they are
TOO_MANY = 60_000
WARM = 10
ALONE, WITH, LEFT = "alone", "beside", "after"
Claim = Callable[[str, int], bytes]


def of_own_task(partition: str, number: int) -> bytes:
    """A claim by a task that is nobody else's."""
    return _claim(partition, f"t{number}", {})


def with_own_where(partition: str, number: int) -> bytes:
    """A claim of one task with a condition that no other has; half of them hold for all rows, half for none."""
    value = 41 + number if number % 2 else 10**9 + number  # the profile has 41 in all rows
    return _claim(
        partition, "t", {"where": [{"path": "max_global_steps", "op": "<=" if number % 2 else ">", "value": value}]}
    )


KINDS: dict[str, Claim] = {"each of its own task": of_own_task, "each with its own where": with_own_where}


def run(place: Place) -> Outcome:
    """Both kinds, one after the other."""
    lines: list[Line] = []
    data: dict[str, Any] = {}
    rows = one_row_bodies(place.profile(64))
    for kind, claim in KINDS.items():
        with place.server("waiting") as ours, Child(Worker, ours.url) as worker:
            found = [
                _round(place, ours, worker, rows, claim, f"{kind} {number}".replace(" ", "_"))
                for number in place.rounds(f"puts beside {WAITING} claims, {kind}")
            ]
        runs = {side: Runs(tuple(each[side] for each in found)) for side in (ALONE, WITH, LEFT)}
        lines += _lines(place, kind, runs)
        data[kind] = {side: each.seconds() for side, each in runs.items()}
    return Outcome(lines, data)


def _round(
    place: Place, ours: Server, worker: Child, rows: list[Json], claim: Claim, partition: str
) -> dict[str, tuple[float, ...]]:
    ours.fill(partition, place.profile(min(CHUNK, place.scale.pool)), place.scale.pool, place.tell)

    def puts(side: str) -> tuple[float, ...]:
        worker.do("put_times", partition, rows, f"warm_{side}", WARM, MOST_S)
        return tuple(worker.do("put_times", partition, rows, side, place.scale.tail_calls, MOST_S))

    alone = puts(ALONE)
    with parked(ours, [claim(partition, number) for number in range(WAITING)]):
        beside = puts(WITH)
    after = puts(LEFT)
    ours.call("DELETE", f"/partitions/{partition}")
    return {ALONE: alone, WITH: beside, LEFT: after}


def _claim(partition: str, task: str, more: Json) -> bytes:
    wanted = {"fields": CLAIMED, "batch_size": TOO_MANY, "wait_s": WAIT_S, "compact": True} | more
    return request(f"/v1/partitions/{partition}/tasks/{task}/claims", json.dumps(wanted))


def _lines(place: Place, kind: str, runs: dict[str, Runs]) -> list[Line]:
    row = f"one-key put beside {WAITING} claims that wait, {kind}, {place.scale.pool:,} rows"
    if not place.scale.is_judged:
        return [Line(row, ours=ms(runs[WITH]))]
    alone = runs[ALONE]
    said = {side: f"{ms(runs[side])} against {ms(alone)}" for side in (WITH, LEFT)}
    return [
        at_most(row, BESIDE, ratio(runs[WITH], alone), said[WITH]),
        at_most(f"{row}: after they left", AFTER, ratio(runs[LEFT], alone), said[LEFT]),
        *tails({f"puts {side}, {kind}": found for side, found in runs.items()}),
    ]


CASE = Case("waiting", "puts beside 200 claims that wait for the same partition", run)
