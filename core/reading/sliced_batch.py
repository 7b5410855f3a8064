"""Describes many rows in slices: their state is copied in the first step and encoded in the later ones.

The copy is a partition of its own that has these rows and fields alone, so that `describe` tells of it what it would
have told of the rows then. Of cells it is noted at first where they are in their buffers: a buffer's text grows or is
replaced, but what is in it stays. Each field's cells are then joined in a step of their own.
"""

from dataclasses import replace

import numpy as np

from core.arrays import Cells, Ints, run_of
from core.slices import Sliced
from core.state.cells.readiness import HostWords, StatusWords
from core.state.partition import Partition, known
from core.state.transitions import ABSENT, LIVE

from .batch import Batch, View, describe

AT_ONCE = 16_384  # rows that are described in one step
_PARTS = ("keys", "group_ids", "field_schema", "custom_meta", "backend_meta", "field_status")


def described(partition: Partition, rows: Ints, indexes: Ints, view: View) -> Batch | Sliced[Batch]:
    """As `describe`, in slices where there are many rows. The rows are told of as they are now."""
    if len(rows) <= AT_ONCE:
        return describe(partition, rows, indexes, view)
    every = np.concatenate([np.zeros(1, np.int64), rows])
    order = np.argsort(every, kind="stable")
    fields = known(partition, partition.fields if view.fields is None else view.fields)[0]
    copied = _copied(partition, every)
    copied.grid.fields = {fld.name: fld.picked(every[order]) for fld in fields}
    return _in_slices(copied, order, indexes, view)


def _in_slices(copied: Partition, order: Ints, indexes: Ints, view: View) -> Sliced[Batch]:
    """In the copy the rows follow each other from row 1 on; their cells do in this order, which is quick to copy."""
    there = np.where(copied.rows.is_live(slice(1, None)), np.arange(1, len(order)), 0)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    yield
    for fld in copied.fields.values():
        if fld.backend.cells is not None:
            fld.backend.cells.gather(run_of(place))
            yield
    bare = describe(copied, there, indexes, replace(view, include=frozenset()))
    batch = describe(copied, there[:0], indexes[:0], view)  # has the parts that are asked for
    for part in _PARTS:
        if getattr(batch, part) is not None:
            yield
            told = describe(copied, there, indexes, replace(view, include=frozenset({part})))
            bare = replace(bare, **{part: getattr(told, part)})
    return bare


def _copied(partition: Partition, every: Ints) -> Partition:
    """A partition that has these rows, row 0 first; its fields are still to come."""
    out = Partition(partition.partition_id, partition.created_at, partition.made_at, HostWords)
    out.revision = partition.revision
    out.rows.state = np.where(every > 0, LIVE, ABSENT)
    out.rows.keys = _taken(partition.rows.keys, every)
    if partition.rows.has_keys:
        out.rows.by_key = {b"": 0}  # that a row of the partition has a key is told by the parts of the batch
    out.groups.ids, out.groups.number = partition.groups.ids.copy(), partition.groups.number[every]
    out.custom_meta = _taken(partition.custom_meta, every)
    grid = partition.grid
    out.grid.capacity, out.grid.status = len(every), _words(grid.status, every)
    out.grid.revoked.words = None if grid.revoked.words is None else _words(grid.revoked.words, every)
    out.grid.sizes.table = grid.sizes.table.take(every, axis=0)
    return out


def _words(words: StatusWords, every: Ints) -> StatusWords:
    out = HostWords(0)
    out.restore(np.array(words.gather(every)))
    return out


def _taken(column: Cells | None, every: Ints) -> Cells | None:
    return None if column is None else column[every]
