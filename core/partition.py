"""The state of one partition, and how each event changes it. It decides nothing: events are facts.

A partition shares nothing with others, so none pays for another's size. Row 0 is absent everywhere.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch

from .arrays import Cells, Ints, filled, grown, unpack
from .cells import EMPTY
from .events import (
    BackendMetaSet,
    Cleared,
    Consumed,
    CustomMetaSet,
    Grouped,
    Inserted,
    PartitionSet,
    Produced,
    Reset,
    Settings,
)
from .fields import Field
from .groups import Groups
from .rows import NULL, Rows
from .status import StatusWords, bit_column, count_bits, covers, mask_of
from .supply import Pool, Supply
from .tasks import FREE, Task

NO_SETTINGS = Settings(None, None, 5, ())
MAX_SUPPLIES = 64
GAPS = 1024


class Partition:
    """Samples x fields of one name: rows, groups, bit words, fields, custom meta, tasks; supplies are derived."""

    def __init__(self, partition_id: str, created_at: float, revision: int, device: torch.device) -> None:
        self.partition_id = partition_id
        self.created_at = created_at
        self.made_at = self.revision = revision
        self.settings = NO_SETTINGS
        self.rows = Rows()
        self.groups = Groups(self.rows.capacity)
        self.status = StatusWords(device, self.rows.capacity)
        self.fields: dict[str, Field] = {}
        self.produced: Ints = np.zeros(64, np.int64)
        self.custom_meta: Cells | None = None
        self.tasks: dict[str, Task] = {}
        self.supplies: dict[tuple[str, tuple[str, ...]], Supply] = {}
        self._free_bits: list[int] = []

    # What is asked often

    def mask(self, fields: Iterable[Field]) -> Ints:
        """The bit words of these fields: int64 [words]."""
        return mask_of((field.bit for field in fields), self.status.width)

    def holders(self, field: Field) -> Ints:
        """Rows that have the field."""
        if not self.produced[field.bit]:
            return np.empty(0, np.int64)
        rows = np.arange(self.rows.n)
        return np.flatnonzero(bit_column(self.status.gather(rows).cpu().numpy(), field.bit))

    def custom_meta_of(self, rows: Ints) -> list[bytes]:
        """One JSON value per row; null for the absent row."""
        if self.custom_meta is None:
            return [EMPTY if row else NULL for row in rows.tolist()]
        return self.custom_meta[rows].tolist()  # type: ignore[no-any-return]

    def cells_of(self, name: str, rows: Ints) -> list[bytes]:
        """Backend meta of one field: one JSON value per row."""
        field = self.fields[name]
        has = bit_column(self.status.gather(rows).cpu().numpy(), field.bit)
        cells = field.backend.at(rows, has)
        return [cells] * len(rows) if isinstance(cells, bytes) else cells

    def is_done(self, task: Task | None) -> bool:
        """Every expected sample is here or was, and each live one is consumed by the task."""
        expected = self.settings.expected_samples
        if expected is None or self.rows.inserted < expected:
            return False
        return (task.consumed_live if task else 0) == self.rows.live_count

    def supply(self, name: str, fields: tuple[str, ...]) -> Supply:
        """What task `name` can take for `fields` (all known, no repetition), kept from here on."""
        supply = self.supplies.get((name, fields))
        if supply is None:
            if len(self.supplies) >= MAX_SUPPLIES:
                del self.supplies[next(iter(self.supplies))]
            supply = self.supplies[name, fields] = self._build_supply(name, fields)
        return supply

    def _build_supply(self, name: str, fields: tuple[str, ...]) -> Supply:
        mask = self.mask(self.fields[field] for field in fields)
        rows = np.arange(self.rows.n)
        takeable = self.status.complete(self.status.gather(rows), mask).astype(np.bool_)
        task = self.tasks.get(name)
        if task is not None:
            takeable &= task.state[: self.rows.n] == FREE
        supply = Supply(fields, mask, Pool(), {})
        supply.add(np.flatnonzero(takeable))
        return supply

    def _supplies_of(self, name: str) -> Iterator[Supply]:
        return (supply for (task, _), supply in self.supplies.items() if task == name)

    # Events

    def configure(self, event: PartitionSet) -> None:
        self.settings = event.settings
        for declared in event.settings.fields:
            field = self.fields.get(declared.name)
            if field is None:
                self._add_field(declared.name)
            else:
                field.adopt(declared, self.holders(field), self.rows.capacity)

    def insert(self, event: Inserted) -> None:
        rows = self.rows.add(event.first, event.count, event.keys)
        self._resize(self.rows.capacity)
        self.rows.revision[rows] = self.revision

    def group(self, event: Grouped) -> None:
        rows = self._touch(event.indexes)
        numbers = self.groups.add(rows, event.group_ids)
        for supply in self.supplies.values():
            supply.grouped(rows, numbers)

    def set_custom_meta(self, event: CustomMetaSet) -> None:
        rows = self._touch(event.indexes)
        if self.custom_meta is None:
            self.custom_meta = filled(self.rows.capacity, EMPTY, object)
            self.custom_meta[0] = NULL
        self.custom_meta[rows] = event.cells

    def set_backend_meta(self, event: BackendMetaSet) -> None:
        rows = self._touch(event.indexes)
        for name, cells in event.cells.items():
            field = self.fields[name]
            field.backend.spread(self.holders(field), self.rows.capacity)
            field.backend.put(rows, cells, lambda: rows, self.rows.capacity)

    def produce(self, event: Produced) -> None:
        rows = self._touch(event.indexes)
        fields = [self.fields.get(write.name) or self._add_field(write.name) for write in event.writes]
        before = self.status.gather(rows).cpu().numpy()
        for field, write in zip(fields, event.writes, strict=True):
            field.write(rows, write, self._others(field, rows, before), self.rows.capacity)
        after = before | self.mask(fields)
        self.status.write(rows, after)
        fresh = count_bits(after & ~before)
        self.produced[: len(fresh)] += fresh
        self._offer(rows, before, after)

    def _others(self, field: Field, rows: Ints, before: Ints) -> "_Others":
        return _Others(self, field, rows, before)

    def _offer(self, rows: Ints, before: Ints, after: Ints) -> None:
        for (name, _), supply in self.supplies.items():
            fresh = covers(after, supply.mask) & ~covers(before, supply.mask)
            task = self.tasks.get(name)
            if task is not None:
                fresh &= task.state[rows] == FREE
            if fresh.any():
                supply.add(rows[fresh])

    def consume(self, event: Consumed) -> None:
        rows = self.rows.locate(unpack(event.indexes))
        task = self.tasks.get(event.task)
        if task is None:
            task = self.tasks[event.task] = Task(self.rows.capacity)
        task.consume(rows)
        for supply in self._supplies_of(event.task):
            supply.discard(rows)

    def reset(self, event: Reset) -> None:
        self.tasks[event.task].reset()
        for key in [key for key in self.supplies if key[0] == event.task]:
            del self.supplies[key]

    def clear(self, event: Cleared) -> None:
        rows = self.rows.locate(unpack(event.indexes))
        words = self.status.gather(rows).cpu().numpy()
        gone = count_bits(words)
        self.produced[: len(gone)] -= gone
        self.status.write(rows, np.zeros_like(words))
        self._forget_rows(rows)
        self._forget_fields(gone)
        if self.rows.n - 1 - self.rows.live_count > max(GAPS, self.rows.live_count) or not self.rows.live_count:
            self._close_gaps()

    def _forget_rows(self, rows: Ints) -> None:
        for supply in self.supplies.values():
            supply.discard(rows)
        numbers = self.groups.remove(rows)
        for supply in self.supplies.values():
            supply.resized(numbers)
        for task in self.tasks.values():
            task.clear(rows)
        for field in self.fields.values():
            field.backend.clear(rows)
        if self.custom_meta is not None:
            self.custom_meta[rows] = EMPTY
        self.rows.remove(rows)

    def _forget_fields(self, gone: Ints) -> None:
        for name, field in list(self.fields.items()):
            if self.produced[field.bit] or not gone[field.bit]:
                continue
            if field.declared is not None:
                field.declare(field.declared)
                field.backend.forget_const()
            else:
                self.rows.revision[field.backend.recorded()] = self.revision  # patched without having the field
                del self.fields[name]
                self._free_bits.append(field.bit)
                self._drop_supplies(name)

    def _drop_supplies(self, field: str) -> None:
        for key in [key for key in self.supplies if field in key[1]]:
            del self.supplies[key]

    # Room

    def _columns(self) -> list[Field | Task]:
        return [*self.fields.values(), *self.tasks.values()]

    def _touch(self, indexes: bytes) -> Ints:
        rows = self.rows.locate(unpack(indexes))
        self.rows.revision[rows] = self.revision
        return rows

    def _add_field(self, name: str) -> Field:
        bit = self._free_bits.pop() if self._free_bits else len(self.fields)
        declared = next((d for d in self.settings.fields if d.name == name), None)
        self.fields[name] = field = Field(name, bit, declared)
        width = self.status.width
        self.status.reserve(self.rows.capacity, bit + 1)
        if self.status.width != width:
            self.produced = grown(self.produced, self.status.width * 64, 0)
            self.supplies.clear()
        return field

    def _resize(self, capacity: int) -> None:
        if capacity == len(self.status.words):
            return
        self.status.reserve(capacity, 0)
        self.groups.resize(capacity)
        for part in self._columns():
            part.resize(capacity)
        if self.custom_meta is not None:
            self.custom_meta = grown(self.custom_meta, capacity, EMPTY)

    def _close_gaps(self) -> None:
        """Give back what cleared rows held; row numbers change, so the supplies go too."""
        rows = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(self.rows.live)])
        capacity = len(rows) + 15
        self.status.keep(rows, capacity)
        self.groups.keep(rows, capacity)
        for part in self._columns():
            part.keep(rows, capacity)
        if self.custom_meta is not None:
            self.custom_meta = grown(self.custom_meta[rows], capacity, EMPTY)
            self.custom_meta[0] = NULL
        self.rows.keep(rows, capacity)
        self.supplies.clear()


class _Others:
    """Rows that had a field before a write, the written ones left out; found only when asked, and once."""

    __slots__ = ("_before", "_field", "_found", "_partition", "_rows")

    def __init__(self, partition: Partition, field: Field, rows: Ints, before: Ints) -> None:
        self._partition, self._field, self._rows, self._before = partition, field, rows, before
        self._found: Ints | None = None

    def __call__(self) -> Ints:
        if self._found is None:
            rewritten = int(bit_column(self._before, self._field.bit).sum())
            if self._partition.produced[self._field.bit] == rewritten:
                self._found = np.empty(0, np.int64)
            else:
                self._found = np.setdiff1d(self._partition.holders(self._field), self._rows)
        return self._found


def known(partition: Partition, names: Sequence[str]) -> tuple[list[Field], list[str]]:
    """The fields of `names` that the partition knows, once each in the order asked, and the names it does not."""
    wanted = dict.fromkeys(names)
    fields = [partition.fields[name] for name in wanted if name in partition.fields]
    return fields, [name for name in wanted if name not in partition.fields]
