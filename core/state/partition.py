"""The state of one partition: rows, groups, cells, tasks, leases, clears, and the supplies derived from them.

A partition shares nothing with others, so none pays for another's size. A sample is a row number in every array; row 0
is the absent row, to which indexes that are not held map. `core.apply` changes a partition; it decides nothing itself.
"""

from collections.abc import Iterable

import numpy as np

from core.arrays import Bits, Cells, Flags, Ints, grown, unpack
from core.events import (
    Limits,
    Settings,
)
from core.state.cells.fields import Field
from core.state.cells.grid import Grid
from core.state.cells.json_cells import EMPTY
from core.state.cells.readiness import NewWords, StatusWords
from core.state.supply.supplies import Supplies
from core.state.supply.supply import Supply

from .clears import Clear
from .groups import Groups
from .key_history import KeyHistory
from .leases import Lease, lose
from .rows import NULL, Rows
from .tasks import Task
from .transitions import FREE, OPEN
from .ttl import Ttls
from .where import Where

NO_SETTINGS = Settings(None, None, 5, ())
GAPS = 1024
NOWHERE = (b"", np.empty(0, np.int64))


class Partition:
    """All that the service knows of the samples of one name."""

    def __init__(self, partition_id: str, created_at: float, revision: int, new_words: NewWords) -> None:
        self.partition_id = partition_id
        self.created_at = created_at  # Unix seconds
        self.made_at = revision  # the revision of the change that made it
        self.revision = revision  # of the last change of it
        self.settings = NO_SETTINGS  # what PUT gave
        self.limits = limits_of(NO_SETTINGS)  # what PUT, PATCH and seal made of them
        self.is_sealed = False  # takes no more samples
        self.rows = Rows()  # the sample of each row
        self.groups = Groups(self.rows.capacity)  # which rows belong together
        self.grid = Grid(new_words, self.rows.capacity)  # samples x fields
        self.custom_meta: Cells | None = None  # a JSON object per row, once a row has one
        self.tasks: dict[str, Task] = {}  # by name, from the first hand-out on
        self.supplies = Supplies()  # what tasks can take; derived
        self.leases: dict[int, Lease] = {}  # those with an open row here, by number
        self.clears: dict[int, Clear] = {}  # the pending ones, by number
        self.ttls = Ttls()  # rows that disappear unless a field comes in time
        self.key_history = KeyHistory(revision)  # what keyed rows were before their last change
        self._located: tuple[bytes, Ints] = NOWHERE  # the rows of the indexes that were located last

    # Queries

    @property
    def fields(self) -> dict[str, Field]:
        """By name, in the order they came."""
        return self.grid.fields

    @property
    def status(self) -> StatusWords:
        """Which fields are ready, per row."""
        return self.grid.status

    def mask(self, fields: Iterable[Field]) -> Ints:
        """The bit words of these fields: int64 [words]."""
        return self.grid.mask(fields)

    def custom_meta_of(self, rows: slice | Ints) -> list[bytes]:
        """One JSON value per row; null for the absent row."""
        if self.custom_meta is None:
            there = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
            return [EMPTY if row else NULL for row in there.tolist()]
        return self.custom_meta[rows].tolist()  # type: ignore[no-any-return]

    def keys_of(self, rows: slice | Ints) -> list[bytes]:
        """One JSON string per row; null for rows without a key."""
        if self.rows.keys is None:
            return [NULL] * (rows.stop - rows.start if isinstance(rows, slice) else len(rows))
        return self.rows.keys[rows].tolist()  # type: ignore[no-any-return]

    def is_done(self, task: Task | None) -> bool:
        """No more samples are to come, and each live one is consumed by the task, or dead for it."""
        expected = self.limits.expected_samples
        if not self.is_sealed and (expected is None or self.rows.inserted < expected):
            return False
        return (task.settled if task else 0) == self.rows.live_count

    def free(self, name: str, rows: slice | Ints) -> Flags:
        """bool [rows]: live, and neither consumed by the task, leased nor dead."""
        states, live = self.states_for(name), self.rows.is_live(rows)
        return live if states is None else live & (states[rows] == FREE)

    def states_for(self, name: str) -> Bits | None:
        """uint8 [capacity]: what each row is for the task; None where all are FREE."""
        task = self.tasks.get(name)
        return None if task is None else task.state

    def mask_of(self, fields: tuple[str, ...]) -> Ints:
        """As `mask`, by names."""
        return self.mask(self.fields[field] for field in fields)

    def supply(self, name: str, fields: tuple[str, ...], where: Where | None = None) -> Supply:
        """What task `name` can take for `fields` (all known, sorted), of the rows that fulfil `where`."""
        return self.supplies.of(self, name, fields, where)

    # Steps that events share

    def drop_supplies_of_width(self, width: int) -> None:
        """Drop all supplies if the status words no longer have this width: no mask fits any more."""
        if self.grid.status.width != width:
            self.supplies.drop()

    def task(self, name: str) -> Task:
        """The task of this name, made at its first use."""
        if name not in self.tasks:
            self.tasks[name] = Task(self.rows.capacity)
        return self.tasks[name]

    def drop_closed(self, leases: Iterable[Lease]) -> None:
        """Leases without an open row hold nothing here."""
        for lease in leases:
            if not np.count_nonzero(lease.fate == OPEN):
                self.leases.pop(lease.number, None)

    def lose(self, leases: list[Lease], indexes: Ints | None) -> list[Lease]:
        """Rows of these leases are taken from their holders; None: all. Returns the leases that hold none any more."""
        over = lose(leases, indexes)
        for lease in over:
            self.leases.pop(lease.number, None)
        return over

    def lose_all(self) -> list[Lease]:
        """Every lease ends."""
        return self.lose(list(self.leases.values()), None)

    # Capacity

    def locate_at(self, indexes: bytes, rows: Ints) -> None:
        """Remember the rows of these indexes, which the next events of a change mostly name again."""
        self._located = (indexes, rows)

    def touch(self, indexes: bytes) -> Ints:
        """The rows of these indexes; marks them as changed at the partition's revision."""
        if indexes != self._located[0]:
            self.locate_at(indexes, self.rows.locate(unpack(indexes)))
        rows = self._located[1]
        self.rows.revision[rows] = self.revision
        self.key_history.touch(self.revision)
        return rows

    def resize(self, capacity: int) -> None:
        """Room for this many rows."""
        if capacity == self.grid.capacity:
            return
        self.grid.resize(capacity)
        self.groups.resize(capacity)
        self.ttls.resize(capacity)
        for task in self.tasks.values():
            task.resize(capacity)
        if self.custom_meta is not None:
            self.custom_meta = grown(self.custom_meta, capacity, EMPTY)

    def tidy(self) -> None:
        """Close the gaps once they outnumber the held rows."""
        held = self.rows.held_count
        if self.rows.n - 1 - held > max(GAPS, held) or not held:
            self._close_gaps()

    def forget_rows(self) -> None:
        """Forget the remembered rows: some moved, came or left."""
        self._located = NOWHERE

    def _close_gaps(self) -> None:
        """Free the memory of cleared rows. Row numbers change, so all supplies are dropped."""
        rows = np.concatenate([np.zeros(1, np.int64), self.rows.held()])
        capacity = len(rows) + 15
        self.grid.compact(rows, capacity)
        self.groups.compact(rows, capacity)
        self.ttls.compact(rows, capacity)
        for task in self.tasks.values():
            task.compact(rows, capacity)
        if self.custom_meta is not None:
            self.custom_meta = grown(self.custom_meta[rows], capacity, EMPTY)
            self.custom_meta[0] = NULL
        self.rows.compact(rows, capacity)
        self.forget_rows()
        self.groups.remove(self.rows.clearing())
        self.supplies.drop()


def limits_of(settings: Settings) -> Limits:
    """The limits that a PUT gives."""
    return Limits(settings.expected_samples, settings.max_samples, settings.max_attempts)


def known(partition: Partition, names: Iterable[str]) -> tuple[list[Field], list[str]]:
    """The fields of `names` that the partition knows, once each in the order asked, and the names it does not."""
    wanted = dict.fromkeys(names)
    fields = [partition.fields[name] for name in wanted if name in partition.fields]
    return fields, [name for name in wanted if name not in partition.fields]
