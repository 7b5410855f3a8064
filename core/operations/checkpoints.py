"""Checkpoints: saves the state as an image, and restores one.

A restore brings back partitions with all they hold, tasks, closed claims, clears and kept replies, and releases leases.
Index, revision and epoch counters only ever rise (core/apply/restore.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from core.apply.restore import jump_to
from core.arrays import Ints, pack
from core.engine import Engine
from core.events import Begun, Restored, Revoked
from core.snapshot.checkpoint_file import Saved
from core.snapshot.image import image
from core.state.partition import Partition

from . import expiry


@dataclass(frozen=True, slots=True)
class Went:
    """The result of a restore. `revived`: indexes of rows that were cleared, clearing or revoked since the image,
    ascending; their bytes may be deleted. `burnt`: indexes given out since, both ends inclusive.
    """

    epoch: int
    revived: Ints
    burnt: tuple[int, int] | None


def begin_history(engine: Engine) -> None:
    """Give the history a name, by which its checkpoints are recognised."""
    if not engine.history:
        engine.commit(Begun("", engine.token()))


def image_of(engine: Engine) -> tuple[int, bytes]:
    """(revision, image) of the present state; blocks the thread while it is written."""
    return engine.revision, image(engine)


def restore(engine: Engine, saved: Saved, unproduced: bool) -> Went:
    """Replace the state by the image. `unproduced`: revoke the fields of revived rows, to be produced again."""
    jump = jump_to(engine.history, saved.history)
    before = engine.partitions
    engine.commit(Restored("", saved.image, releases=True), revision=max(engine.revision + 1, saved.revision + jump))
    since = saved.revision
    found = {} if jump else {name: _revived(before, one, since) for name, one in engine.partitions.items()}
    if unproduced:
        for name, indexes in found.items():
            _unproduce(engine, engine.partitions[name], indexes)
    expiry.begin_anew(engine)
    burnt = (saved.next_index, engine.next_index - 1) if engine.next_index > saved.next_index else None
    return Went(engine.epoch, np.sort(np.concatenate([np.empty(0, np.int64), *found.values()])), burnt)


def _revived(before: Mapping[str, Partition], now: Partition, since: int) -> Ints:
    """Indexes of rows that are live now and were not just before, or that lost a cell since the image."""
    indexes = now.rows.global_index[now.rows.after(-1, now.rows.n)]
    was = before.get(now.partition_id)
    if was is None:
        return indexes
    rows = was.rows.locate(indexes)
    return np.asarray(indexes[(rows == 0) | was.grid.revoked.since(rows, since)])


def _unproduce(engine: Engine, partition: Partition, indexes: Ints) -> None:
    rows = partition.rows.locate(indexes)
    words = partition.grid.status.gather(rows)
    lost = words.any(1)
    names = [field.name for field in partition.fields.values()]
    if lost.any():
        engine.commit(Revoked(partition.partition_id, pack(indexes[lost]), names))
