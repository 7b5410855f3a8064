"""What a sample costs in memory, what its cells cost, and whether clearing gives it back. Each in a fresh process."""

import ctypes
import gc
import json
import tracemalloc
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

from core.operations.delete import delete
from core.reading.selectors import Selector

from ..child import Child
from ..engines import new_engine, settle, write
from ..outcome import Case, Line, Outcome, at_most
from ..place import Place
from ..profile import FIELDS, Json, Profile, make

PER_SAMPLE, PER_CELL, PER_EQUAL, LEFT = 450, 64, 64, 10
# Small calls, so that the memory which one leaves in the allocator is small beside the rows.
CHUNK = 512
CELL = 4096


class Memory:
    """One engine and the bytes that this process holds, seen from outside (resident) and inside (traced)."""

    def __init__(self, is_traced: bool) -> None:
        self.engine, self.is_traced = new_engine(), is_traced
        self.profile: Profile = make(CHUNK)
        self.numbers = count()
        for cells in (None, "distinct", "equal"):  # what is allocated once, whatever comes
            self.fill("warm-up", CHUNK, cells)
        if is_traced:
            tracemalloc.start()

    def held(self) -> int:
        """Bytes, after a collection."""
        gc.collect()
        if self.is_traced:
            return tracemalloc.get_traced_memory()[0]
        ctypes.CDLL(None).malloc_trim(0)
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    def fill(self, partition: str, rows: int, cells: str | None) -> int:
        """Write keyed rows of 28 fields; `cells`: none, "distinct" or "equal". JSON bytes of all cells."""
        return sum(self._chunk(partition, min(CHUNK, rows - begin), cells) for begin in range(0, rows, CHUNK))

    def _chunk(self, partition: str, rows: int, cells: str | None) -> int:
        body = self.profile.body(0, rows, backend=False, meta=False)
        del body["group_ids"]
        number = next(self.numbers)
        body["keys"] = [f"{number}_{key}" for key in body["keys"]]
        columns = self._columns(rows, number * CHUNK, cells)
        body["backend_meta"] = columns
        write(self.engine, partition, body)
        return sum(len(json.dumps(cell, separators=(",", ":"))) for column in columns.values() for cell in column)

    def _columns(self, rows: int, first: int, cells: str | None) -> dict[str, Json]:
        if cells is None:
            return {}
        if cells == "equal":
            return {"input_ids": ["x" * CELL] * rows}
        return {
            name: [{"packed_size": 10**6 + (first + row) * len(FIELDS) + at} for row in range(rows)]
            for at, name in enumerate(FIELDS)
        }

    def growth(self, rows: int, cells: str | None) -> tuple[int, int]:
        """(bytes held more after such rows were written, JSON bytes of their cells)."""
        before = self.held()
        size = self.fill(f"{cells} {rows}", rows, cells)
        return self.held() - before, size

    def given_back(self, rows: int) -> tuple[int, int]:
        """(bytes held more after such rows were written, of them after each was deleted)."""
        before = self.held()
        self.fill("q", rows, "distinct")
        full = self.held() - before
        partition = self.engine.partitions["q"]
        while len(at := partition.rows.after(-1, CHUNK)):
            delete(self.engine, "q", Selector(indexes=partition.rows.global_index[at].tolist()))
            settle(self.engine)
        return full, self.held() - before


@dataclass(frozen=True, slots=True)
class Found:
    """Of one process: bytes per sample, per cell and per row with an equal cell, and the size of a cell's JSON."""

    sample: float
    cell: float
    json_cell: float
    equal: float


def run(place: Place) -> Outcome:
    """Judged on the larger of resident and traced bytes: each misses something that the other includes."""
    rows, some = place.scale.stored, place.scale.stored // 5
    ways = {}
    for way in ("resident", "traced"):
        place.tell(f"{rows:,} rows, {way} bytes")
        with Child(Memory, way == "traced") as child:
            ways[way] = _measure(child, rows, some)
            held, left = child.do("given_back", some) if way == "traced" else (0, 0)
    data: dict[str, Any] = {"rows": rows, "cells_of_rows": some, "deleted": {"held": held, "left": left}}
    data |= {way: asdict(found) for way, found in ways.items()}
    return Outcome(_lines(place, list(ways.values()), 100 * left / max(1, held)), data)


def _measure(child: Child, rows: int, some: int) -> Found:
    bare, _ = child.do("growth", rows, None)
    base, _ = child.do("growth", some, None)
    full, size = child.do("growth", some, "distinct")
    equal, _ = child.do("growth", some, "equal")
    cells = some * len(FIELDS)
    each = (bare / rows, (full - base) / cells, size / cells, (equal - base) / some)
    return Found(*(round(value, 1) for value in each))


def _lines(place: Place, ways: list[Found], left: float) -> list[Line]:
    json_cell = ways[0].json_cell
    beyond = max(found.cell for found in ways) - json_cell
    return [
        _line(place, "bytes per keyed sample of 28 fields", PER_SAMPLE, max(found.sample for found in ways), "bytes"),
        _line(place, f"bytes per distinct cell beyond its {json_cell:g} of JSON", PER_CELL, beyond, "bytes"),
        _line(place, f"bytes per row for one equal cell of {CELL:,}", PER_EQUAL, max(f.equal for f in ways), "bytes"),
        _line(place, "left after all rows were deleted", LEFT, left, "%"),
    ]


def _line(place: Place, row: str, most: float, value: float, unit: str) -> Line:
    ours = f"{value:.1f} {unit}"
    return at_most(row, most, value, ours, unit) if place.scale.is_judged else Line(row, ours=ours)


CASE = Case("memory", "bytes per sample and per cell, and what clearing gives back", run)
