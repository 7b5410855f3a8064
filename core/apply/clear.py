"""Events of clears in two steps: planned, committed, aborted.

Rows that are clearing stand in no lookup, supply, group size or count of live rows, but keep all they have: leases go
on, an accept counts, and an abort brings them back as they then are.
"""

from core.arrays import unpack
from core.events import ClearAborted, ClearCommitted, ClearPlanned
from core.state.clears import Clear
from core.state.service import ServiceState
from core.state.transitions import ABORTED, COMMITTED

from .remove import bring_back, drop, withdraw


def plan(state: ServiceState, event: ClearPlanned) -> None:
    """Rows are clearing from now on."""
    partition = state.changing(event.partition)
    indexes = unpack(event.indexes)
    rows = partition.rows.locate(indexes)
    withdraw(partition, rows)
    partition.grid.hide(rows)
    partition.rows.hide(rows)
    clear = Clear(
        event.number, partition.partition_id, indexes, event.with_tombstones, event.planned_at, len(indexes)
    )  # fmt: skip
    partition.clears[event.number] = clear
    state.clears.begin(clear)


def commit(state: ServiceState, event: ClearCommitted) -> None:
    """They are gone, and with them what is leased of them."""
    partition = state.changing(event.partition)
    clear = partition.clears.pop(event.number)
    rows = partition.rows.locate_held(clear.indexes)
    partition.grid.hide(rows, -1)
    partition.rows.drop(rows, clear.with_tombstones)
    drop(state, partition, rows, clear.indexes)
    state.clears.close(event.number, COMMITTED)


def abort(state: ServiceState, event: ClearAborted) -> None:
    """They are back, changed as of now."""
    partition = state.changing(event.partition)
    clear = partition.clears.pop(event.number)
    rows = partition.rows.locate_held(clear.indexes)
    partition.grid.hide(rows, -1)
    partition.rows.show(rows)
    bring_back(partition, rows)
    partition.rows.revision[rows] = partition.revision
    state.clears.close(event.number, ABORTED)
