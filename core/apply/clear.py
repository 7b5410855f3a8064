"""What planning, committing and aborting a clear does to a partition. As all events, these decide nothing.

Rows that are clearing stand in no lookup, supply, group size or count of live rows, but keep all they have: leases go
on, an accept counts, and an abort brings them back as they then are.
"""

from core.arrays import unpack
from core.events import ClearAborted, ClearCommitted, ClearPlanned
from core.state.clears import Clear
from core.state.leases import Lease
from core.state.partition import Partition

from .remove import bring_back, drop, withdraw


def plan(partition: Partition, event: ClearPlanned) -> Clear:
    """Rows are clearing from now on."""
    indexes = unpack(event.indexes)
    rows = partition.rows.locate(indexes)
    withdraw(partition, rows)
    partition.grid.hide(rows)
    partition.rows.hide(rows)
    clear = Clear(
        event.number, partition.partition_id, indexes, event.with_tombstones, event.planned_at, len(indexes)
    )  # fmt: skip
    partition.clears[event.number] = clear
    return clear


def commit(partition: Partition, event: ClearCommitted) -> list[Lease]:
    """They are gone, and with them what is leased of them."""
    clear = partition.clears.pop(event.number)
    rows = partition.rows.locate_held(clear.indexes)
    partition.grid.hide(rows, -1)
    partition.rows.drop(rows, clear.with_tombstones)
    return drop(partition, rows, clear.indexes)


def abort(partition: Partition, event: ClearAborted) -> None:
    """They are back, changed as of now."""
    clear = partition.clears.pop(event.number)
    rows = partition.rows.locate_held(clear.indexes)
    partition.grid.hide(rows, -1)
    partition.rows.show(rows)
    bring_back(partition, rows)
    partition.rows.revision[rows] = partition.revision
