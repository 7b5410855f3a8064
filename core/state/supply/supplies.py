"""The supplies of one partition, and what changes of it tell them. A change costs them its rows, however many they are.

Theory of operation. A change marks the rows it touched, and names them to those who wait if somebody does (`news.py`).
Whoever asks for a supply gets it up to date. A supply is kept while somebody holds it, as each waiting claim does its
own; without that the last ones that were asked for are.
"""

from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from core.arrays import Ints
from core.state import bounded_dict
from core.state.where import Where

from .news import ANY, News
from .shared import Passing, Ready, Table
from .supply import PartitionMarks, Supply

MAX_RECENT = 64
MAX_KEPT_BYTES = 512 << 20  # for one partition: 256 waiting tasks at a million rows, 9,000 at 30,000
_ROW, _INDEX_ROW = 2, 40  # bytes of a row in a supply with its groups, and in a sampler index
Key = tuple[str, tuple[str, ...], Where | None]


@dataclass(slots=True)
class KeptSupplies:
    """The supplies of a partition and what they share, from the first supply on: before it no change need be noted."""

    supplies: WeakValueDictionary[Key, Supply] = field(default_factory=WeakValueDictionary)
    ready: WeakValueDictionary[tuple[str, ...], Ready] = field(default_factory=WeakValueDictionary)
    passing: WeakValueDictionary[Where, Passing] = field(default_factory=WeakValueDictionary)
    marks: PartitionMarks = field(default_factory=PartitionMarks)


class Supplies:
    """By task, fields (sorted, all known) and `where`."""

    __slots__ = ("_recent", "kept", "news")

    def __init__(self) -> None:
        self._recent: dict[Key, Supply] = {}
        self.kept: KeptSupplies | None = None
        self.news: News | None = None  # for the calls that wait; None while none does

    def of(self, table: Table, task: str, fields: tuple[str, ...], where: Where | None) -> Supply:
        """The one of these, up to date."""
        found = self.begun(table, task, fields, where)
        found.refresh(table)
        return found

    def begun(self, table: Table, task: str, fields: tuple[str, ...], where: Where | None) -> Supply:
        """The one of these, which may be far behind."""
        key = (task, fields, where)
        kept = self.kept = self.kept or KeptSupplies()
        found = self._recent.pop(key, None) or kept.supplies.get(key)
        if found is None:
            found = kept.supplies[key] = _made(kept, table, *key)
        bounded_dict.put(self._recent, key, found, MAX_RECENT)
        return found

    def is_full(self, rows: int) -> bool:
        """Whether what somebody holds of `rows` rows takes too much memory; who holds only his own may go on."""
        kept = self.kept
        if kept is None or _kept_bytes(kept, rows) <= MAX_KEPT_BYTES:
            return False
        self._recent.clear()  # nobody holds these
        return _kept_bytes(kept, rows) > MAX_KEPT_BYTES and len(kept.supplies) > 1

    # What changes tell

    def inserted(self, rows: Ints) -> None:
        """These rows are new: ready for nothing, but there."""
        if self.kept is not None:
            self.kept.marks.touched.touch(rows)
            self.kept.marks.told.touch(rows)

    def produced(self, rows: Ints, bits: int) -> None:
        """Fields with these bits are ready for these rows."""
        self._touch(rows)
        self._tell(rows, bits)

    def revoked(self, rows: Ints) -> None:
        """Fields of these rows are not ready any more."""
        self._touch(rows)

    def told(self, rows: Ints) -> None:
        """These rows have other custom meta."""
        if self.kept is not None:
            self.kept.marks.told.touch(rows)
        self._tell(rows, ANY)

    def grouped(self, rows: Ints, numbers: Ints) -> None:
        """These rows got groups of these numbers."""
        if self.kept is not None:
            self.kept.marks.grouped.touch(rows)
            self.kept.marks.sized.touch(numbers)
        self._tell(rows, ANY)

    def moved(self, rows: Ints, numbers: Ints) -> None:
        """These rows are no longer live, or are again; `numbers` are of their groups."""
        self._touch(rows)
        if self.kept is not None:
            self.kept.marks.sized.touch(numbers)
        self.tell_all()

    def took(self, task: str, rows: Ints, *, is_of_share: bool) -> None:
        """The task has taken these rows."""
        self._taken(task, rows)
        if self.news is not None:
            (self.news.gave if is_of_share else self.news.took).add(task)

    def gave(self, task: str, rows: Ints) -> None:
        """The task has given these rows back, or settled others."""
        self._taken(task, rows)
        if self.news is not None:
            self.news.gave.add(task)

    def _touch(self, rows: Ints) -> None:
        if self.kept is not None:
            self.kept.marks.touched.touch(rows)

    def _taken(self, task: str, rows: Ints) -> None:
        marks = None if self.kept is None else self.kept.marks.taken.get(task)
        if marks is not None:
            marks.touch(rows)

    def _tell(self, rows: Ints, bits: int) -> None:
        if self.news is not None:
            self.news.bits |= bits
            if not self.news.rows or self.news.rows[-1] is not rows:  # events of one change mostly share their rows
                self.news.rows.append(rows)

    def tell_all(self) -> None:
        """Something happened that may be of interest to whoever waits."""
        if self.news is not None:
            self.news.is_general = True

    # What ends

    def drop(self, name: str | None = None) -> None:
        """Those of a field; without one all: row numbers or words have changed."""
        if name is None:
            self._recent.clear()
            self.kept = None
        if self.kept is not None:
            for key in [key for key in self.kept.supplies if name in key[1]]:
                self._recent.pop(key, None)
                self.kept.supplies.pop(key, None)
            for fields in [fields for fields in self.kept.ready if name in fields]:
                self.kept.ready.pop(fields, None)
        self.tell_all()


def _made(kept: KeptSupplies, table: Table, task: str, fields: tuple[str, ...], where: Where | None) -> Supply:
    ready = kept.ready.get(fields)
    if ready is None:
        ready = kept.ready[fields] = Ready(table.mask_of(fields))
    passing = None if where is None else kept.passing.get(where)
    if where is not None and passing is None:
        passing = kept.passing[where] = Passing(where)
    return Supply(task, fields, kept.marks, ready, passing)


def _kept_bytes(kept: KeptSupplies, rows: int) -> int:
    each = _ROW * len(kept.supplies) + len(kept.ready) + len(kept.passing)
    return rows * (each + _INDEX_ROW * len(kept.marks.indexes))
