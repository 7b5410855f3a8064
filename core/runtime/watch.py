"""Finds the waiting calls of one partition that a change may serve. The others are not looked at.

Theory of operation. A claim that was looked at in vain says what it lacks (`core.state.supply.news.Lack`): so many more
rows with its fields, and maybe with its `where`. A change says what it did (`News`). Rows that it touched are examined
once for each list of fields that somebody waits for, and once for each `where` that may be fulfilled by what they have
at its path; then they are counted, and whoever has got his number is due. So a change costs the rows it touched, not
the calls that wait. Counts are of rows that may be new: a look too early finds nothing, and says anew what lacks.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from core.arrays import Ints
from core.state.cells.placements import bit_set
from core.state.cells.readiness import covers
from core.state.partition import Partition
from core.state.supply.news import ANY, Lack, News

from .countdown import Countdown
from .watched_where import WatchedWhere


class _Family:
    """Claims that wait for the same fields; `mask` and `bits` of these are found when they are needed first."""

    __slots__ = ("_any", "_bits", "_fields", "_mask", "_passing")

    def __init__(self, fields: tuple[str, ...]) -> None:
        self._fields = fields
        self._any = Countdown()
        self._passing = WatchedWhere()
        self._bits = 0
        self._mask: Ints = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._any) + len(self._passing)

    def put(self, number: int, lack: Lack) -> None:
        if lack.where is None:
            self._any.put(number, lack.rows)
        else:
            self._passing.put(number, lack.where, lack.rows)

    def leave(self, number: int, lack: Lack) -> None:
        if lack.where is None:
            self._any.leave(number)
        else:
            self._passing.leave(number, lack.where)

    def come(self, partition: Partition, bits: int, rows: Ints, words: Ints) -> Iterator[int]:
        """These live rows were touched; who is due by that."""
        if not len(self._mask):
            self._mask = partition.mask_of(self._fields)
            self._bits = bit_set(partition.fields[name] for name in self._fields)
        if not bits & self._bits:
            return
        rows = rows[covers(words, self._mask)]
        if len(rows):
            yield from self._any.come(len(rows))
            if len(self._passing):
                yield from self._passing.come(partition.custom_meta_of(rows))


class Watch:
    """The calls, by their numbers."""

    __slots__ = ("_always", "_by_task", "_families", "_followers", "_lacks")

    def __init__(self) -> None:
        self._always: set[int] = set()
        self._lacks: dict[int, Lack] = {}
        self._by_task: dict[str, set[int]] = {}
        self._followers: dict[str, set[int]] = {}
        self._families: dict[tuple[str, ...], _Family] = {}

    def put(self, number: int, lack: Lack | None) -> None:
        """This call waits, for what it lacks, or for any change."""
        self.leave(number)
        if lack is None:
            self._always.add(number)
            return
        self._lacks[number] = lack
        self._by_task.setdefault(lack.task, set()).add(number)
        if lack.follows:
            self._followers.setdefault(lack.task, set()).add(number)
        if lack.fields:
            self._families.setdefault(lack.fields, _Family(lack.fields)).put(number, lack)

    def leave(self, number: int) -> None:
        """This call waits no more."""
        self._always.discard(number)
        lack = self._lacks.pop(number, None)
        if lack is None:
            return
        for by_task in (self._by_task, self._followers):
            numbers = by_task.get(lack.task, set())
            numbers.discard(number)
            if not numbers:
                by_task.pop(lack.task, None)
        family = self._families.get(lack.fields)
        if family is not None:
            family.leave(number, lack)
            if not len(family):
                del self._families[lack.fields]

    def due(self, partition: Partition, news: News) -> Iterable[int] | None:
        """Those that the news may serve; None: it may be any of them."""
        if news.is_general or (partition.is_sealed and news.bits == ANY):
            self._families.clear()  # fields may have other bits now; whoever is looked at is put again
            return None
        numbers = set(self._always)
        for task in news.gave:
            numbers |= self._by_task.get(task, set())
        for task in news.took:
            is_near = partition.is_sealed or partition.is_done(partition.tasks.get(task))  # nothing more may be to come
            numbers |= (self._by_task if is_near else self._followers).get(task, set())
        if self._families and news.rows:
            numbers.update(self._served(partition, news))
        return numbers

    def _served(self, partition: Partition, news: News) -> Iterator[int]:
        rows = news.rows[0] if len(news.rows) == 1 else np.unique(np.concatenate(news.rows))
        rows = rows[partition.rows.is_live(rows)]
        words = partition.status.gather(rows)
        for family in self._families.values():
            yield from family.come(partition, news.bits, rows, words)
