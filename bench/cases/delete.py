"""Removes 512 and 1,024 rows by their keys, in process. TransferQueue has no such call, so there is no comparison."""

import time
from typing import Any

from core.operations.delete import delete
from core.reading.selectors import Selector

from ..child import Child
from ..engines import load, new_engine, settle
from ..outcome import Case, Line, Outcome, ms
from ..place import Place
from ..profile import make
from ..turns import in_turns


class Deleting:
    """Seconds of deletes; the rows are written anew before each."""

    def __init__(self, rows: int) -> None:
        self.profile, self.engine = make(rows), new_engine()

    def delete(self, calls: int) -> list[float]:
        """Whole partitions, row by row: a partition of its own each time."""
        return [self._once(f"p{number}") for number in range(calls)]

    def _once(self, partition: str) -> float:
        load(self.engine, partition, self.profile)
        began = time.perf_counter()
        cleared, *_ = delete(self.engine, partition, Selector(keys=self.profile.keys))
        took = time.perf_counter() - began
        settle(self.engine)
        if cleared != len(self.profile.keys):
            raise RuntimeError(f"{cleared} of {len(self.profile.keys)} rows were deleted")
        return took


def run(place: Place) -> Outcome:
    """Measure; no target."""
    lines: list[Line] = []
    data: dict[str, Any] = {}
    calls = max(2, place.scale.calls // 4)
    for rows in place.scale.sizes[1:]:
        with Child(Deleting, rows) as child:
            runs = in_turns(place.rounds(f"{rows} rows"), {"ours": lambda: child.do("delete", calls)})["ours"]
        lines.append(Line(f"delete of {rows:,} rows", ours=ms(runs), note="theirs: not measured"))
        data[str(rows)] = runs.seconds()
    return Outcome(lines, data)


CASE = Case("delete", "delete of 512 and 1,024 rows", run)
