"""The shape of the cost, in process: a claim in partitions of all sizes, backend meta by the number of fields."""

import time
from itertools import cycle
from typing import Any

from app.convert import selector, view
from app.routes import production_render, tasks_render
from batchmeta.wire.requests import Claim, ReadBackendMeta
from core.limits import MAX_ROWS
from core.operations.claim import Claimed, ClaimRequest, claim_now
from core.operations.consumption import reset_consumption
from core.operations.read import read_backend_meta
from core.samplers import sampler

from ..child import Child
from ..engines import grow, new_engine, settle, whole, write
from ..outcome import Case, Line, Outcome, at_most, ms, tails
from ..place import Place
from ..profile import CLAIMED, FIELDS, Backend
from ..turns import Runs, in_turns, ratio, timed

SIZE = 64
SIZES, NEIGHBOURS, TENFOLD, PART = 2, 2, 12, 1 / 5


class Claiming:
    """One engine with partitions of several sizes; 28 fields each, none with keys."""

    def __init__(self) -> None:
        self.engine, self.sizes = new_engine(), dict[str, int]()
        request = Claim(fields=list(CLAIMED), batch_size=SIZE, compact=True)
        chosen = sampler("sequential", {})
        self.wanted = ClaimRequest("t", CLAIMED, SIZE, SIZE, 0.0, chosen, view(request, request.fields))

    def grow(self, partition: str, rows: int) -> None:
        """A partition, all of its rows ready."""
        grow(self.engine, partition, rows, FIELDS)
        self.sizes[partition] = rows

    def claim(self, partition: str, calls: int) -> list[float]:
        """Seconds of claims and their replies; the task begins anew before the partition is used up."""
        most = min(12, self.sizes[partition] // SIZE - 1)
        took: list[float] = []
        while len(took) < calls:
            reset_consumption(self.engine, partition, "t")
            self._once(partition)
            took += [self._once(partition) for _ in range(min(calls - len(took), most))]
        return took

    def _once(self, partition: str) -> float:
        began = time.perf_counter()
        answer = whole(claim_now(self.engine, partition, self.wanted))
        whole(tasks_render.claim(answer))
        took = time.perf_counter() - began
        settle(self.engine)
        if not isinstance(answer, Claimed):
            raise RuntimeError(f"a claim of {SIZE} found too little in {partition}")
        return took


class Wide:
    """One engine with partitions of several numbers of fields."""

    def __init__(self, rows: int) -> None:
        self.engine, self.rows = new_engine(), rows

    def grow(self, partition: str, count: int, backend: Backend) -> None:
        """`rows` rows of `count` fields."""
        names = [f"f{number}" for number in range(count)]
        cells: dict[str, Any] = {name: {"const": "1"} for name in names}
        if backend == "distinct":
            cells = {
                name: [{"packed_size": row * count + at} for row in range(self.rows)] for at, name in enumerate(names)
            }
        keys = [f"k{row}" for row in range(self.rows)]
        schema = {name: {"dtype": "int64", "shape": [1]} for name in names}
        write(self.engine, partition, {"keys": keys, "create": True, "field_schema": schema, "backend_meta": cells})

    def read(self, partitions: list[str], fields: int, calls: int) -> list[float]:
        """Seconds from request to bytes for the first `fields` fields of these partitions in turn."""
        request = ReadBackendMeta(fields=[f"f{number}" for number in range(fields)])
        seen = view(Claim(fields=request.fields or [], batch_size=1), request.fields)

        names = cycle(partitions)

        def once() -> None:
            found = whole(read_backend_meta(self.engine, next(names), selector(request), seen, MAX_ROWS, None))
            whole(production_render.backend_meta(found))

        once()
        return timed(once, calls)


def run(place: Place) -> Outcome:
    """Claims by partition size and beside neighbours, then backend meta by fields."""
    lines, data = _claims(place)
    for backend in ("const", "distinct"):
        more, figures = _fields(place, backend)
        lines += more
        data[backend] = figures
    return Outcome(lines, data)


def _claims(place: Place) -> tuple[list[Line], dict[str, Any]]:
    calls, partitions = place.scale.calls, [str(size) for size in place.scale.partitions]
    count, each = place.scale.neighbours
    with Child(Claiming) as child, Child(Claiming) as crowded:
        for name in partitions:
            place.tell(f"a partition of {int(name):,} rows")
            child.do("grow", name, int(name))
        middle = str(each)
        child.do("grow", f"alone {middle}", each)
        for number in range(count + 1):
            place.tell(f"neighbour {number} of {count}")
            crowded.do("grow", str(number), each)
        sides = {name: _claiming(child, name, calls) for name in partitions}
        sides |= {
            "alone": _claiming(child, f"alone {middle}", calls),
            "beside": _claiming(crowded, str(count // 2), calls),
        }
        runs = in_turns(place.rounds("claims"), sides)
    first, last = runs[partitions[0]], runs[partitions[-1]]
    lines = [
        _line(place, f"claim of {SIZE}, {int(partitions[0]):,} to {int(partitions[-1]):,} rows", SIZES, last, first),
        _line(
            place, f"claim of {SIZE}, beside {count} partitions of {each:,}", NEIGHBOURS, runs["beside"], runs["alone"]
        ),
    ]
    lines += _tails(place, {f"claim of {SIZE}, {name} rows": runs[name] for name in partitions})
    return lines, {"claim": {name: found.seconds() for name, found in runs.items()}}


def _claiming(child: Child, partition: str, calls: int) -> Any:
    return lambda: child.do("claim", partition, calls)


def _fields(place: Place, backend: Backend) -> tuple[list[Line], dict[str, Any]]:
    """Ten partitions of 28 fields in turn hold what one of 280 does.

    One that is read again and again would stay in the processor's nearest cache, which the 280 do not fit into.
    """
    rows, calls = place.scale.rows, place.scale.calls
    narrow = [f"28 {number}" for number in range(10)]
    with Child(Wide, rows) as child:
        for name in narrow:
            child.do("grow", name, 28, backend)
        child.do("grow", "280", 280, backend)
        sides = {
            "2 of 28": lambda: child.do("read", narrow, 2, calls),
            "28": lambda: child.do("read", narrow, 28, calls),
            "280": lambda: child.do("read", ["280"], 280, calls),
        }
        runs = in_turns(place.rounds(f"{backend} backend meta by fields"), sides)
    name = f"backend meta, {rows:,} rows, {backend}"
    lines = [
        _line(place, f"{name}, 28 to 280 fields", TENFOLD, runs["280"], runs["28"]),
        # A constant costs no row anything, so what is read then is the call's fixed part: nothing to judge.
        _line(place, f"{name}, 2 of 28 fields", PART if backend == "distinct" else None, runs["2 of 28"], runs["28"]),
    ]
    lines += _tails(place, {f"{name}, {fields} fields": found for fields, found in runs.items()})
    return lines, {name: found.seconds() for name, found in runs.items()}


def _tails(place: Place, runs: dict[str, Runs]) -> list[Line]:
    return tails(runs) if place.scale.is_judged else []


def _line(place: Place, row: str, most: float | None, over: Runs, under: Runs) -> Line:
    if most is None or not place.scale.is_judged:
        return Line(row, ours=ms(over))
    return at_most(row, most, ratio(over, under), f"{ms(over)} against {ms(under)}")


CASE = Case("shape", "the shape of the cost: partition sizes, neighbours, fields", run)
