"""A write being decided: which rows it means, what would change, the events for it. Nothing is applied until commit.

New rows stand as row 0 (absent) while deciding: no group, no meta, nothing produced, which is what a new row has.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from .arrays import Ints, pack
from .cells import EMPTY, NULL, Column, Const, json_strings, merged
from .engine import Engine
from .errors import (
    DuplicateIndexes,
    DuplicateKeys,
    GroupConflict,
    Invalid,
    KeyNotFound,
    SampleCleared,
    SampleNotFound,
    TooManySamples,
)
from .events import AnyEvent, CustomMetaSet, FieldWrite, Grouped, Inserted, PartitionMade, Produced
from .fields import Field
from .intake import MAX_FIELDS, check_keys
from .partition import Partition, known
from .status import covers

T = TypeVar("T")


class Draft:
    """Rows of one partition and the events collected for them. `created` counts new rows."""

    def __init__(self, engine: Engine, partition_id: str, partition: Partition | None) -> None:
        self.engine = engine
        self.partition_id = partition_id
        self.partition = partition or Partition(partition_id, 0.0, 0, engine.device)
        self.events: list[AnyEvent] = []
        if partition is None:
            self.events.append(PartitionMade(partition_id, engine.wall()))
        self.indexes: Ints = np.empty(0, np.int64)
        self.rows: Ints = np.empty(0, np.int64)
        self.created = 0

    # Which rows

    def choose(self, indexes: list[int] | None, keys: list[str] | None, *, create: bool = False) -> None:
        """The rows of `indexes` or of `keys`. Raises where a row is named twice, not there, or nothing is named."""
        if (indexes is None) == (keys is None):
            raise Invalid.at("body", "give global_indexes or keys, one of them")
        if keys is not None:
            self.name(keys, create=create)
        elif indexes is not None:
            self._index(indexes, create)

    def _index(self, indexes: list[int], create: bool) -> None:
        if create:
            raise Invalid.at("body.create", "needs keys: indexes are given out by the service")
        if len(set(indexes)) != len(indexes):
            raise DuplicateIndexes(global_indexes=_repeated(indexes))
        self.indexes = np.array(indexes, np.int64)
        self.rows = self.partition.rows.locate(self.indexes)
        if not self.rows.all():
            self._absent(self.indexes[self.rows == 0])

    def _absent(self, indexes: Ints) -> None:
        future = indexes[indexes >= self.engine.next_index]
        if len(future):
            raise SampleNotFound(global_indexes=future.tolist())
        raise SampleCleared(global_indexes=indexes.tolist())

    def add(self, count: int) -> None:
        """`count` new rows without keys."""
        self._create(count, None)
        first = self.engine.next_index
        self.indexes = np.arange(first, first + count)
        self.rows = np.zeros(count, np.int64)

    def name(self, keys: list[str], *, create: bool) -> None:
        """The rows of these keys; those that are not there are new, or refused without `create`."""
        check_keys(keys, "body.keys")
        if len(set(keys)) != len(keys):
            raise DuplicateKeys(keys=_repeated(keys))
        names = json_strings(keys)
        found = self.partition.rows.find(names)
        new = [i for i, index in enumerate(found) if index is None]
        if new and not create:
            raise KeyNotFound(keys=[keys[i] for i in new])
        if new:
            self._create(len(new), [names[i] for i in new])
        following = iter(range(self.engine.next_index, self.engine.next_index + len(new)))
        self.indexes = np.array([next(following) if index is None else index for index in found], np.int64)
        self.rows = self.partition.rows.locate(self.indexes)

    def _create(self, count: int, keys: list[bytes] | None) -> None:
        most = self.partition.settings.max_samples
        if most is not None and self.partition.rows.live_count + count > most:
            raise TooManySamples(
                f"partition {self.partition_id!r} holds {self.partition.rows.live_count} of at most {most} samples; "
                f"this call would add {count}: delete some, or wait until they are"
            )
        self.created = count
        self.events.append(Inserted(self.partition_id, self.engine.next_index, count, keys))

    # What changes

    def group(self, group_ids: list[bytes]) -> None:
        """Set groups, once. Raises GroupConflict."""
        groups = self.partition.groups
        current = groups.ids[groups.number[self.rows]].tolist()
        clash = [
            i
            for i, (old, new) in enumerate(zip(current, group_ids, strict=True))
            if NULL not in (old, new) and old != new
        ]
        if clash:
            raise GroupConflict(global_indexes=self.indexes[clash].tolist())
        at = [i for i, (old, new) in enumerate(zip(current, group_ids, strict=True)) if old == NULL != new]
        if at:
            self.events.append(Grouped(self.partition_id, pack(self.indexes[at]), [group_ids[i] for i in at]))

    def merge(self, patches: Column) -> None:
        """Merge custom meta, row by row; rows that stay as they are leave no event."""
        cells = [patches.value] * len(self.rows) if isinstance(patches, Const) else patches
        stored = [EMPTY if cell == NULL else cell for cell in self.partition.custom_meta_of(self.rows)]
        most = self.engine.cells.max_bytes
        after = [
            merged(old, new, f"body.custom_meta[{i}]", most)
            for i, (old, new) in enumerate(zip(stored, cells, strict=True))
        ]
        at = [i for i, (old, new) in enumerate(zip(stored, after, strict=True)) if old is not new]
        if at:
            self.events.append(CustomMetaSet(self.partition_id, pack(self.indexes[at]), [after[i] for i in at]))

    def produce(self, writes: list[FieldWrite]) -> None:
        """Make fields ready. Raises KindConflict, DtypeConflict."""
        fields, new = known(self.partition, [write.name for write in writes])
        for write in writes:
            if write.name in self.partition.fields:
                self.partition.fields[write.name].check(write)
        if len(self.partition.fields) + len(new) > MAX_FIELDS:
            raise Invalid.at("body.field_schema", f"would make more than {MAX_FIELDS} fields in a partition")
        at = np.arange(len(self.rows)) if new else self._changed(fields, writes)
        if len(at) and writes:
            chosen = writes if len(at) == len(self.rows) else [_subset(write, at) for write in writes]
            self.events.append(Produced(self.partition_id, pack(self.indexes[at]), chosen))

    def _changed(self, fields: list[Field], writes: list[FieldWrite]) -> Ints:
        """Positions of rows that lack one of the fields, or have another shape or cell in one."""
        words = self.partition.status.gather(self.rows).cpu().numpy()
        ready = covers(words, self.partition.mask(fields))
        if not ready.any():
            return np.arange(len(self.rows))
        same = ready.copy()
        at = np.flatnonzero(ready)
        for field, write in zip(fields, writes, strict=True):
            same[at] &= field.same(_subset(write, at), self.rows[at])
        return np.flatnonzero(~same)

    def commit(self) -> int:
        """Apply what was collected, if anything; the partition's revision after it."""
        if self.events:
            self.engine.commit(*self.events)
        return self.engine.revision_of(self.partition_id)


def _subset(write: FieldWrite, at: Ints) -> FieldWrite:
    """The part of a write for the rows at these positions."""
    sizes, cells = write.sizes, write.backend
    if sizes is not None:
        sizes = np.frombuffer(sizes, "<i4").reshape(-1, write.rank or 1)[at].tobytes()
    if not isinstance(cells, bytes):
        cells = [cells[i] for i in at.tolist()]
    return FieldWrite(write.name, write.kind, write.dtype, write.ragged, write.rank, write.shape, sizes, cells)


def _repeated(items: Sequence[T]) -> list[T]:
    return [item for item, times in Counter(items).items() if times > 1]
