"""What samplers keep of a supply so that a claim costs its batch: rows in an order of their own, or with a weight.

A supply notes the rows that came, went or have other custom meta, and whoever asks next looks at those alone. Derived.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from core.arrays import Flags, Ints, grown
from core.state.where import Numbers

from .index_set import BLOCK, IndexSet
from .marks import ALL

Values = npt.NDArray[Any]
_FIRST = 64
WEIGHED = 128  # rows that a sampler looks at in the time that a supply needs for a block
LARGE = 32_768  # rows of a run that is merged no more
FRONT = 1024  # rows that are moved out of such runs at a time


class SamplerIndex:
    """Base: which rows to look at again. A row whose value is not a number has no place in an order."""

    __slots__ = ("__weakref__", "_noted", "_waiting")

    def __init__(self) -> None:
        self._noted: list[Ints] = []
        self._waiting = 0

    def note(self, rows: Ints) -> int:
        """These rows came, went, or have another value. Returns how many wait to be looked at."""
        self._noted.append(rows)
        self._waiting += len(rows)
        return self._waiting

    def refresh(self, ready: IndexSet, value_of: Callable[[Ints], Values], most: int = ALL) -> bool:
        """Look at them: those in `ready` that have a value are in the order, the others are not.

        At most at so many; False while some are left: it is not to be used before.
        """
        if not self._waiting:
            return True
        rows = self._next(most)
        self._remove(rows)
        rows = ready.has(rows)
        values = value_of(rows) if len(rows) else np.zeros(0)
        there = ~np.isnan(values)
        self._put(rows[there], values[there])
        return not self._waiting

    def _next(self, most: int) -> Ints:
        """Those to look at now, each once."""
        if self._waiting <= most:
            rows = self._noted[0] if len(self._noted) == 1 else np.unique(np.concatenate(self._noted))
            self._noted, self._waiting = [], 0
            return rows
        first = self._noted.pop(0)
        if len(first) > most:
            self._noted.insert(0, first[most:])
        self._waiting -= len(first[:most])
        return first[:most]

    def has(self, rows: Ints) -> Flags:
        """bool [rows]: which of these are in the order."""
        raise NotImplementedError

    def _remove(self, rows: Ints) -> None:
        raise NotImplementedError

    def _put(self, rows: Ints, values: Values) -> None:
        raise NotImplementedError


class Run:
    """Rows by rising value, equal ones by row: `values`, `rows`, and the `stamps` they came with. `start`: the first
    that may still be there.
    """

    __slots__ = ("rows", "stamps", "start", "values")

    def __init__(self, values: Values, rows: Ints, stamps: Ints) -> None:
        order = np.lexsort((rows, values))
        self.values, self.rows, self.stamps = values[order], rows[order], stamps[order]
        self.start = 0

    def __len__(self) -> int:
        return len(self.rows) - self.start


class RankedRows(SamplerIndex):
    """Rows by value, lowest first, in sorted runs that are merged as they grow (the logarithmic method of Bentley and
    Saxe, 1980). A row that went stays in its run with an old stamp, until runs are merged or half of all is gone.

    A run of LARGE rows is merged no more, so that nothing takes long. What comes first of all large runs is moved to a
    run of its own, `_front`, so that a claim does not look at each of them.
    """

    __slots__ = ("_front", "_large", "_runs", "_stamp", "_stamps", "count")

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self._front = Run(np.zeros(0), np.empty(0, np.int64), np.empty(0, np.int64))
        self._large: list[Run] = []  # with nothing that comes before a row of the front
        self._runs: list[Run] = []
        self._stamps: Ints = np.zeros(0, np.int64)
        self._stamp = 0

    def lowest(self, k: int) -> Ints:
        """The k rows of the lowest values, in that order; all if there are fewer."""
        if self._large and len(self._first(self._front, k)) < k:
            self._refill(max(FRONT, 2 * k))
        runs = [run for run in (self._front, *self._runs) if len(run)]
        parts = [(run, self._first(run, k)) for run in runs]
        if len(parts) == 1:
            return np.asarray(parts[0][0].rows[parts[0][1]])
        values = [run.values[at] for run, at in parts]
        rows = np.concatenate([np.empty(0, np.int64), *(run.rows[at] for run, at in parts)])
        return np.asarray(rows[np.lexsort((rows, np.concatenate(values)))[:k]]) if values else rows

    def _refill(self, count: int) -> None:
        """The first so many of the front and all large runs are the front."""
        runs = [self._front, *self._large]
        places = [self._first(run, count) for run in runs]
        values, rows, stamps = _columns([(run, at) for run, at in zip(runs, places, strict=True)])
        first = np.lexsort((rows, values))[:count]
        counts = np.bincount(np.repeat(np.arange(len(runs)), [len(at) for at in places])[first], minlength=len(runs))
        for run, at, moved in zip(runs, places, counts.tolist(), strict=True):
            run.start = int(at[moved]) if moved < len(at) else int(at[-1]) + 1 if len(at) else len(run.rows)
        self._large = [run for run in self._large if len(run)]
        self._front = Run(values[first], rows[first], stamps[first])

    def _first(self, run: Run, k: int) -> Ints:
        """Where the first k that are still there stand in a run."""
        found: list[Ints] = []
        at, size, missing = run.start, max(k, _FIRST), k
        while missing > 0 and at < len(run.rows):
            there = self._is_there(run, at, at + size)[:missing] + at
            if not found:
                run.start = int(there[0]) if len(there) else min(at + size, len(run.rows))
            if len(there):
                found.append(there)
            missing -= len(there)
            at, size = at + size, size * 2
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def _is_there(self, run: Run, first: int, last: int) -> Ints:
        return np.flatnonzero(self._stamps[run.rows[first:last]] == run.stamps[first:last])

    def has(self, rows: Ints) -> Flags:
        return reserved(self._stamps, rows)[rows] > 0

    def _remove(self, rows: Ints) -> None:
        rows = rows[rows < len(self._stamps)]
        self.count -= int(np.count_nonzero(self._stamps[rows]))
        self._stamps[rows] = 0

    def _put(self, rows: Ints, values: Values) -> None:
        if len(rows):
            self._stamp += 1
            self._stamps = reserved(self._stamps, rows)
            self._stamps[rows] = self._stamp
            self.count += len(rows)
            self._runs.append(Run(values, rows, np.full(len(rows), self._stamp)))
        self._merge()

    def _merge(self) -> None:
        if sum(map(len, (self._front, *self._large, *self._runs))) > 2 * self.count + BLOCK:
            self._large = [run for run in map(self._alive, self._large) if len(run)]
            self._front, self._runs = self._alive(self._front), [self._merged(self._runs)]
        while len(self._runs) > 1 and len(self._runs[-2]) <= 2 * len(self._runs[-1]):
            self._runs[-2:] = [self._merged(self._runs[-2:])]
        if len(self._runs) and len(self._runs[0]) >= LARGE:
            self._large.append(self._runs.pop(0))
            if len(self._front):  # it may not come first any more
                self._runs.append(self._front)
            self._front = self._merged([])

    def _alive(self, run: Run) -> Run:
        return self._merged([run])

    def _merged(self, runs: list[Run]) -> Run:
        return Run(*_columns([(run, self._is_there(run, run.start, len(run.rows)) + run.start) for run in runs]))


def _columns(parts: list[tuple[Run, Ints]]) -> tuple[Values, Ints, Ints]:
    """Values, rows and stamps of these places in runs, one after the other."""
    none = np.empty(0, np.int64)
    values = [run.values[at] for run, at in parts if len(at)] or [np.zeros(0)]  # an empty run has no type of its own
    rows = np.concatenate([none, *(run.rows[at] for run, at in parts)])
    return np.concatenate(values), rows, np.concatenate([none, *(run.stamps[at] for run, at in parts)])


class WeighedRows(SamplerIndex):
    """Rows with a weight: `rows` are they, `weights` by row number; complex128 once one came that is no float64."""

    __slots__ = ("rows", "weights")

    def __init__(self) -> None:
        super().__init__()
        self.rows = IndexSet()
        self.weights: Numbers = np.zeros(0)

    def has(self, rows: Ints) -> Flags:
        return np.isin(rows, self.rows.has(rows), assume_unique=True)

    def _remove(self, rows: Ints) -> None:
        self.rows.discard(rows)

    def _put(self, rows: Ints, values: Values) -> None:
        self.weights = reserved(self.weights.astype(np.result_type(self.weights, values), copy=False), rows)
        self.weights[rows] = values
        self.rows.add(rows)


def reserved(array: Values, rows: Ints) -> Values:
    """`array`, with room for these rows."""
    highest = int(rows.max(initial=-1))
    return array if highest < len(array) else grown(array, highest * 5 // 4 + 1, 0)
