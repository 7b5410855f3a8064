"""The state of one partition, and how each event changes it. It decides nothing: events are facts.

A partition shares nothing with others, so none pays for another's size. Row 0 is absent everywhere.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch

from .arrays import Cells, Ints, filled, grown, pack, unpack
from .cells import EMPTY
from .events import (
    BackendMetaSet,
    Cleared,
    Consumed,
    CustomMetaSet,
    Grouped,
    Inserted,
    Limited,
    Limits,
    PartitionSet,
    Produced,
    Reset,
    Sealed,
    Settings,
)
from .fields import Field
from .grid import Grid
from .groups import Groups
from .plans import bit_set
from .rows import NULL, Rows
from .status import covers
from .supply import Pool, Supply
from .tasks import FREE, Task

NO_SETTINGS = Settings(None, None, 5, ())
MAX_SUPPLIES = 64
GAPS = 1024
NOWHERE = (b"", np.empty(0, np.int64))


class Partition:
    """Samples x fields of one name: rows, groups, grid, custom meta, tasks; supplies are derived."""

    def __init__(self, partition_id: str, created_at: float, revision: int, device: torch.device) -> None:
        self.partition_id = partition_id
        self.created_at = created_at
        self.made_at = self.revision = revision
        self.settings = NO_SETTINGS
        self.limits = limits_of(NO_SETTINGS)
        self.is_sealed = False
        self.rows = Rows()
        self.groups = Groups(self.rows.capacity)
        self.grid = Grid(device, self.rows.capacity)
        self.custom_meta: Cells | None = None
        self.tasks: dict[str, Task] = {}
        self.supplies: dict[tuple[str, tuple[str, ...]], Supply] = {}
        self._located: tuple[bytes, Ints] = NOWHERE

    # What is asked often

    @property
    def fields(self) -> dict[str, Field]:
        """By name, in the order they came."""
        return self.grid.fields

    def mask(self, fields: Iterable[Field]) -> Ints:
        """The bit words of these fields: int64 [words]."""
        return self.grid.mask(fields)

    def custom_meta_of(self, rows: slice | Ints) -> list[bytes]:
        """One JSON value per row; null for the absent row."""
        if self.custom_meta is None:
            there = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
            return [EMPTY if row else NULL for row in there.tolist()]
        return self.custom_meta[rows].tolist()  # type: ignore[no-any-return]

    def is_done(self, task: Task | None) -> bool:
        """No more samples are to come, and each live one is consumed by the task."""
        expected = self.limits.expected_samples
        if not self.is_sealed and (expected is None or self.rows.inserted < expected):
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
        wanted = [self.fields[field] for field in fields]
        mask = self.mask(wanted)
        takeable = self.grid.status.complete(np.arange(self.rows.n), mask).astype(np.bool_)
        task = self.tasks.get(name)
        if task is not None:
            takeable &= task.state[: self.rows.n] == FREE
        supply = Supply(fields, mask, bit_set(wanted), Pool(), {})
        supply.add(np.flatnonzero(takeable))
        return supply

    def _supplies_of(self, name: str) -> Iterator[Supply]:
        return (supply for (task, _), supply in self.supplies.items() if task == name)

    # Events

    def configure(self, event: PartitionSet) -> None:
        self.settings = event.settings
        limits = limits_of(event.settings)
        if self.is_sealed:  # what is expected was settled then
            limits = Limits(self.limits.expected_samples, limits.max_samples, limits.max_attempts)
        self.limits = limits
        width = self.grid.status.width
        for declared in event.settings.fields:
            self.grid.declare(declared)
        self._widened(width)

    def limit(self, event: Limited) -> None:
        self.limits = event.limits

    def seal(self, event: Sealed) -> None:
        self.is_sealed = True
        self.limits = Limits(event.samples, self.limits.max_samples, self.limits.max_attempts)

    def insert(self, event: Inserted) -> None:
        rows = self.rows.add(event.first, event.count, event.keys)
        self._resize(self.rows.capacity)
        self._located = (pack(self.rows.global_index[rows]), rows)
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
        self.grid.patch(self._touch(event.indexes), event.cells)

    def produce(self, event: Produced) -> None:
        rows = self._touch(event.indexes)
        width = self.grid.status.width
        plan, before, after = self.grid.produce(rows, event)
        self._widened(width)
        for (name, _), supply in self.supplies.items():
            if plan.bit_set & supply.bit_set:
                self._offer(name, supply, rows, before, after)

    def _widened(self, width: int) -> None:
        if self.grid.status.width != width:  # masks of the old width fit no more
            self.supplies.clear()

    def _offer(self, name: str, supply: Supply, rows: Ints, before: Ints, after: Ints) -> None:
        fresh = covers(after, supply.mask) & ~covers(before, supply.mask)
        task = self.tasks.get(name)
        if task is not None:
            fresh &= task.state[rows] == FREE
        if np.count_nonzero(fresh):
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
        self._located = NOWHERE
        gone = self.grid.clear(rows)
        self._forget_rows(rows)
        for field in self.grid.forget(gone):
            self.rows.revision[field.backend.recorded()] = self.revision  # patched without having the field
            self._drop_supplies(field.name)
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
        if self.custom_meta is not None:
            self.custom_meta[rows] = EMPTY
        self.rows.remove(rows)

    def _drop_supplies(self, field: str) -> None:
        for key in [key for key in self.supplies if field in key[1]]:
            del self.supplies[key]

    # Room

    def _touch(self, indexes: bytes) -> Ints:
        if indexes != self._located[0]:  # the events of one change mostly name the same rows
            self._located = (indexes, self.rows.locate(unpack(indexes)))
        rows = self._located[1]
        self.rows.revision[rows] = self.revision
        return rows

    def _resize(self, capacity: int) -> None:
        if capacity == self.grid.capacity:
            return
        self.grid.resize(capacity)
        self.groups.resize(capacity)
        for task in self.tasks.values():
            task.resize(capacity)
        if self.custom_meta is not None:
            self.custom_meta = grown(self.custom_meta, capacity, EMPTY)

    def _close_gaps(self) -> None:
        """Give back what cleared rows held; row numbers change, so the supplies go too."""
        rows = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(self.rows.live)])
        capacity = len(rows) + 15
        self.grid.keep(rows, capacity)
        self.groups.keep(rows, capacity)
        for task in self.tasks.values():
            task.keep(rows, capacity)
        if self.custom_meta is not None:
            self.custom_meta = grown(self.custom_meta[rows], capacity, EMPTY)
            self.custom_meta[0] = NULL
        self.rows.keep(rows, capacity)
        self.supplies.clear()


def limits_of(settings: Settings) -> Limits:
    """The limits that a PUT gives."""
    return Limits(settings.expected_samples, settings.max_samples, settings.max_attempts)


def known(partition: Partition, names: Sequence[str]) -> tuple[list[Field], list[str]]:
    """The fields of `names` that the partition knows, once each in the order asked, and the names it does not."""
    wanted = dict.fromkeys(names)
    fields = [partition.fields[name] for name in wanted if name in partition.fields]
    return fields, [name for name in wanted if name not in partition.fields]
