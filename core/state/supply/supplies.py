"""The supplies of one partition, and what changes of it tell them. A change costs them its rows, however many they are.

Theory of operation. A change marks the rows it touched, and names them to those who wait if somebody does (`news.py`).
Whoever asks for a supply gets it up to date. A supply is kept while somebody holds it, as each waiting claim does its
own; without that the last ones that were asked for are.
"""

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


class Supplies:
    """By task, fields (sorted, all known) and `where`."""

    __slots__ = ("_changes", "_kept", "_passing", "_ready", "_recent", "news")

    def __init__(self) -> None:
        self._recent: dict[Key, Supply] = {}
        self._begin()
        self.news: News | None = None  # for the calls that wait; None while none does

    def _begin(self) -> None:
        self._kept: WeakValueDictionary[Key, Supply] = WeakValueDictionary()
        self._ready: WeakValueDictionary[tuple[str, ...], Ready] = WeakValueDictionary()
        self._passing: WeakValueDictionary[Where, Passing] = WeakValueDictionary()
        self._changes = PartitionMarks()

    def of(self, table: Table, task: str, fields: tuple[str, ...], where: Where | None) -> Supply:
        """The one of these, up to date."""
        found = self.begun(table, task, fields, where)
        found.refresh(table)
        return found

    def begun(self, table: Table, task: str, fields: tuple[str, ...], where: Where | None) -> Supply:
        """The one of these, which may be far behind."""
        key = (task, fields, where)
        found = self._recent.pop(key, None) or self._kept.get(key)
        if found is None:
            found = self._kept[key] = self._made(table, *key)
        bounded_dict.put(self._recent, key, found, MAX_RECENT)
        return found

    def is_full(self, rows: int) -> bool:
        """Whether what somebody holds of `rows` rows takes too much memory; who holds only his own may go on."""
        if self._kept_bytes(rows) <= MAX_KEPT_BYTES:
            return False
        self._recent.clear()  # nobody holds these
        return self._kept_bytes(rows) > MAX_KEPT_BYTES and len(self._kept) > 1

    def _kept_bytes(self, rows: int) -> int:
        each = _ROW * len(self._kept) + len(self._ready) + len(self._passing)
        return rows * (each + _INDEX_ROW * len(self._changes.indexes))

    def _made(self, table: Table, task: str, fields: tuple[str, ...], where: Where | None) -> Supply:
        ready = self._ready.get(fields)
        if ready is None:
            ready = self._ready[fields] = Ready(table.mask_of(fields))
        passing = None if where is None else self._passing.get(where)
        if where is not None and passing is None:
            passing = self._passing[where] = Passing(where)
        return Supply(task, fields, self._changes, ready, passing)

    # What changes tell

    def inserted(self, rows: Ints) -> None:
        """These rows are new: ready for nothing, but there."""
        self._changes.touched.touch(rows)
        self._changes.told.touch(rows)

    def produced(self, rows: Ints, bits: int) -> None:
        """Fields with these bits are ready for these rows."""
        self._changes.touched.touch(rows)
        self._tell(rows, bits)

    def revoked(self, rows: Ints) -> None:
        """Fields of these rows are not ready any more."""
        self._changes.touched.touch(rows)

    def told(self, rows: Ints) -> None:
        """These rows have other custom meta."""
        self._changes.told.touch(rows)
        self._tell(rows, ANY)

    def grouped(self, rows: Ints, numbers: Ints) -> None:
        """These rows got groups of these numbers."""
        self._changes.grouped.touch(rows)
        self._changes.sized.touch(numbers)
        self._tell(rows, ANY)

    def moved(self, rows: Ints, numbers: Ints) -> None:
        """These rows are no longer live, or are again; `numbers` are of their groups."""
        self._changes.touched.touch(rows)
        self._changes.sized.touch(numbers)
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

    def _taken(self, task: str, rows: Ints) -> None:
        marks = self._changes.taken.get(task)
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

    def drop(self, field: str | None = None) -> None:
        """Those of a field; without one all: row numbers or words have changed."""
        if field is None:
            self._recent.clear()
            self._begin()
        for key in [key for key in self._kept if field in key[1]]:
            self._recent.pop(key, None)
            self._kept.pop(key, None)
        for fields in [fields for fields in self._ready if field in fields]:
            self._ready.pop(fields, None)
        self.tell_all()
