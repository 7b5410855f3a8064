"""A write before its commit: the rows it names and the events for their changes. Insert and produce share it.

Nothing is applied until commit. A new row is represented by row 0, the absent row, which has no group, no meta and no
field either.
"""

from collections import Counter
from collections.abc import Sequence
from operator import eq
from typing import TypeVar

import msgspec
import numpy as np

from core.arrays import Flags, Ints, pack
from core.engine import Engine
from core.errors import (
    DuplicateIndexes,
    DuplicateKeys,
    GroupConflict,
    Invalid,
    KeyNotFound,
    PartitionSealed,
    PreconditionFailed,
    TooManySamples,
)
from core.events import AnyEvent, CustomMetaSet, Grouped, Inserted, PartitionMade, Produced, Timed
from core.limits import MAX_FIELDS
from core.names import check_keys
from core.state.cells.json_cells import EMPTY, NULL, Cells, CustomMetaMode, json_values, patched, to_list
from core.state.cells.placements import Placement
from core.state.cells.readiness import covers
from core.state.cells.signatures import from_bytes
from core.state.partition import Partition

from . import missing_rows
from .schemas import FieldsWrite

T = TypeVar("T")


class Draft:
    """Rows of one partition and the events collected for them. `created` counts new rows.

    `named`: how many rows the caller named, which is the length of its columns. `written`: the positions of those that
    are written, where cleared ones are left out (None: all are). `skipped`: the cleared ones.
    """

    def __init__(self, engine: Engine, partition_id: str, partition: Partition | None) -> None:
        self.engine = engine
        self.partition_id = partition_id
        self.partition = partition or Partition(partition_id, 0.0, 0, engine.device.words)
        self.events: list[AnyEvent] = []
        if partition is None:
            self.events.append(PartitionMade(partition_id, engine.wall()))
        self.indexes: Ints = np.empty(0, np.int64)
        self.rows: Ints = np.empty(0, np.int64)
        self.created = 0
        self.named = 0
        self.written: Ints | None = None
        self.skipped: list[int | str] = []
        self._packed: bytes | None = None

    @property
    def is_all_new(self) -> bool:
        """Every row is new, and there is at least one."""
        return self.created == len(self.rows) > 0

    def packed(self) -> bytes:
        """All indexes as events carry them."""
        if self._packed is None:
            self._packed = pack(self.indexes)
        return self._packed

    # Which rows

    def choose(
        self, indexes: list[int] | None, keys: list[str] | None, *, create: bool = False, skip: bool = False
    ) -> None:
        """The rows of `indexes` or of `keys`. Raises where a row is named twice, not there, or nothing is named.

        `skip`: rows that were cleared are left out.
        """
        if (indexes is None) == (keys is None):
            raise Invalid.at("body", "give global_indexes or keys, one of them")
        if keys is not None:
            self.name(keys, create=create, skip=skip)
        elif indexes is not None:
            self._index(indexes, create, skip)

    def _index(self, indexes: list[int], create: bool, skip: bool) -> None:
        if create:
            raise Invalid.at("body.create", "needs keys: indexes are given out by the service")
        if len(set(indexes)) != len(indexes):
            raise DuplicateIndexes(global_indexes=_repeated(indexes))
        self.named = len(indexes)
        self.indexes = np.array(indexes, np.int64)
        self.rows = self.partition.rows.locate(self.indexes)
        if not self.rows.all():
            self._absent(skip)

    def _absent(self, skip: bool) -> None:
        missing = self.indexes[self.rows == 0]
        missing_rows.check_indexes(self.partition.rows, missing, self.engine.next_index, skip)
        self.written = np.flatnonzero(self.rows)
        self.indexes, self.rows, self.skipped = self.indexes[self.written], self.rows[self.written], missing.tolist()

    def add(self, count: int) -> None:
        """`count` new rows without keys."""
        self.named = count
        self._create(count, None)
        first = self.engine.next_index
        self.indexes = np.arange(first, first + count)
        self.rows = np.zeros(count, np.int64)

    def name(self, keys: list[str], *, create: bool, skip: bool = False) -> None:
        """The rows of these keys; those that are not there are new, or refused without `create`."""
        check_keys(keys, "body.keys")
        if len(set(keys)) != len(keys):
            raise DuplicateKeys(keys=_repeated(keys))
        self.named = len(keys)
        names = json_values(keys)
        missing_rows.check_keys(self.partition.rows, names, skip)
        if self.partition.rows.tombstones and not self.partition.rows.tombstones.keys().isdisjoint(names):
            keys, names = self._left_out(keys, names)
        found = self.partition.rows.find(names)
        new = [i for i, index in enumerate(found) if index is None]
        if new and not create:
            raise KeyNotFound(keys=[keys[i] for i in new])
        if new:
            self._create(len(new), [names[i] for i in new])
        following = iter(range(self.engine.next_index, self.engine.next_index + len(new)))
        self.indexes = np.array([next(following) if index is None else index for index in found], np.int64)
        if self.created == len(found):
            self.rows = np.zeros(len(found), np.int64)
        else:
            self.rows = self.partition.rows.locate(self.indexes)

    def _left_out(self, keys: list[str], names: list[bytes]) -> tuple[list[str], list[bytes]]:
        """The keys and names without those that have a tombstone; the others become `skipped`."""
        tombstones = self.partition.rows.tombstones
        kept = [i for i, name in enumerate(names) if name not in tombstones]
        self.written = np.array(kept, np.int64)
        self.skipped = [key for key, name in zip(keys, names, strict=True) if name in tombstones]
        return [keys[i] for i in kept], [names[i] for i in kept]

    def of_written(self, cells: Cells) -> Cells:
        """The part of a column over the named rows that is for the written ones."""
        if self.written is None or isinstance(cells, bytes):
            return cells
        return [cells[i] for i in self.written.tolist()]

    def _create(self, count: int, keys: list[bytes] | None) -> None:
        if self.partition.is_sealed:
            raise PartitionSealed(keys=[msgspec.json.decode(key) for key in keys or ()])
        self._check_fits(count)
        self.created = count
        self.events.append(Inserted(self.partition_id, self.engine.next_index, count, keys))

    def _check_fits(self, count: int) -> None:
        most = self.partition.limits.max_samples
        held = self.partition.rows.held_count
        if most is None or held + count <= most:
            return
        if count > most:
            raise TooManySamples(
                f"partition {self.partition_id!r} takes at most {most} samples and this call would add {count}, which "
                f"never fits: send at most {most} in a call, or PATCH max_samples",
                is_final=True,
            )
        raise TooManySamples(
            f"partition {self.partition_id!r} holds {held} of at most {most} samples; "
            f"this call would add {count}: delete some, or wait until they are"
        )

    def require(self, revision: int) -> None:
        """Check that no row changed after `revision`. Raises PreconditionFailed, naming those that did."""
        late = self.partition.rows.revision[self.rows] > revision
        if late.any():
            raise PreconditionFailed(
                f"some of these samples changed after revision {revision}: read them again and decide anew",
                global_indexes=self.indexes[late].tolist(),
            )

    # What changes

    def group(self, group_ids: list[bytes]) -> None:
        """Set the groups of rows that have none. Raises GroupConflict for a row in another group."""
        groups = self.partition.groups
        if self.is_all_new and NULL not in group_ids:
            self.events.append(Grouped(self.partition_id, self.packed(), group_ids))
            return
        both = list(enumerate(zip(groups.ids[groups.number[self.rows]].tolist(), group_ids, strict=True)))
        clash = [i for i, (old, new) in both if NULL not in (old, new) and old != new]
        if clash:
            raise GroupConflict(global_indexes=self.indexes[clash].tolist())
        at = [i for i, (old, new) in both if old == NULL != new]
        if at:
            self.events.append(Grouped(self.partition_id, pack(self.indexes[at]), [group_ids[i] for i in at]))

    def patch(self, patches: Cells, mode: CustomMetaMode) -> None:
        """Patch custom meta, row by row; rows that stay as they are leave no event."""
        cells = to_list(patches, len(self.rows))
        before = [EMPTY] * len(cells) if self.is_all_new else self.partition.custom_meta_of(self.rows)
        stored = [EMPTY if cell == NULL else cell for cell in before]
        most = self.engine.cells.max_bytes
        after = [
            patched(old, new, f"body.custom_meta[{i}]", most, mode)
            for i, (old, new) in enumerate(zip(stored, cells, strict=True))
        ]
        at = [i for i, (old, new) in enumerate(zip(stored, after, strict=True)) if old is not new]
        if at:
            indexes = self.packed() if len(at) == len(after) else pack(self.indexes[at])
            self.events.append(CustomMetaSet(self.partition_id, indexes, [after[i] for i in at]))

    def time(self, length_s: float) -> None:
        """Start, or start again, the time limit of rows that never had a field."""
        at = np.flatnonzero(~self.partition.grid.written(self.rows).any(1))
        if len(at):
            self.events.append(Timed(self.partition_id, pack(self.indexes[at]), length_s))

    def produce(self, write: FieldsWrite) -> None:
        """Make fields ready. Raises KindConflict, DtypeConflict."""
        grid = self.partition.grid
        placement = grid.placement(write.signature)
        write = write if self.written is None else write.at(self.written)
        if placement is None:
            self._check_room(write.signature)
        indexes = self.packed()
        if placement is not None and not self.is_all_new:
            at = self._changed(placement, write)
            if len(at) < len(self.rows):
                indexes, write = pack(self.indexes[at]), write.at(at)
        if indexes:
            self.events.append(
                Produced(self.partition_id, indexes, write.signature, write.sizes.tobytes(), write.backend)
            )

    def _check_room(self, signature: bytes) -> None:
        names = {one.name for one in from_bytes(signature)} | set(self.partition.fields)
        if len(names) > MAX_FIELDS:
            raise Invalid.at("body.field_schema", f"would make more than {MAX_FIELDS} fields in a partition")

    def _changed(self, placement: Placement, write: FieldsWrite) -> Ints:
        """Positions of rows that lack one of the fields, or have another shape or cell in one."""
        grid = self.partition.grid
        ready = np.flatnonzero(covers(grid.status.gather(self.rows), placement.mask))
        if not len(ready) or placement.turning:
            return np.arange(len(self.rows))
        rows, there = self.rows[ready], write.at(ready)
        same = (grid.sizes.at(rows, placement.slots) == there.sizes).all(1)
        if there.backend != placement.consts:
            for field, cells in zip(placement.fields, there.backend, strict=True):
                same &= _same_cells(field.backend.at(rows, None), cells, len(rows))
        is_changed = np.ones(len(self.rows), np.bool_)
        is_changed[ready[same]] = False
        return np.flatnonzero(is_changed)

    def commit(self) -> int:
        """Commit the collected events, if there are any. Returns the partition's revision."""
        if self.events:
            self.engine.commit(*self.events)
        return self.engine.revision_of(self.partition_id)


def _same_cells(stored: bytes | list[bytes], given: bytes | list[bytes], rows: int) -> Flags:
    """bool [rows]: where both are the same bytes."""
    if isinstance(stored, bytes) and isinstance(given, bytes):
        return np.full(rows, stored == given)
    ours = [stored] * rows if isinstance(stored, bytes) else stored
    theirs = [given] * rows if isinstance(given, bytes) else given
    return np.fromiter(map(eq, ours, theirs), np.bool_, rows)


def _repeated(items: Sequence[T]) -> list[T]:
    return [item for item, times in Counter(items).items() if times > 1]
