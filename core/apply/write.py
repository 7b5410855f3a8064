"""Events of what is written: rows, groups, fields, metas, and the times of rows that have no field yet."""

from core.arrays import Ints, filled, pack, unpack
from core.events import BackendMetaSet, CustomMetaSet, Grouped, Inserted, Produced, Revoked, Timed
from core.state.cells.json_cells import EMPTY
from core.state.partition import Partition
from core.state.rows import NULL
from core.state.service import ServiceState


def insert(state: ServiceState, event: Inserted) -> None:
    """New rows, with the indexes that follow the last one given out."""
    state.next_index = max(state.next_index, event.first + event.count)
    partition = state.changing(event.partition)
    rows = partition.rows.add(event.first, event.count, event.keys)
    partition.resize(partition.rows.capacity)
    partition.locate_at(pack(partition.rows.global_index[rows]), rows)
    partition.rows.revision[rows] = partition.revision
    partition.key_history.touch(partition.revision)
    partition.key_history.begin(partition.revision, event.first)
    partition.supplies.inserted(rows)


def group(state: ServiceState, event: Grouped) -> None:
    """Rows get their group, once."""
    partition = state.changing(event.partition)
    rows = partition.touch(event.indexes)
    partition.supplies.grouped(rows, partition.groups.add(rows, event.group_ids))


def set_custom_meta(state: ServiceState, event: CustomMetaSet) -> None:
    """Other custom meta; what was there is remembered for those who follow the keys."""
    partition = state.changing(event.partition)
    rows = partition.touch(event.indexes)
    if partition.custom_meta is None:
        partition.custom_meta = filled(partition.rows.capacity, EMPTY, object)
        partition.custom_meta[0] = NULL
    partition.key_history.replace(partition.revision, partition.rows, rows, partition.custom_meta)
    partition.custom_meta[rows] = event.cells
    partition.supplies.told(rows)


def set_backend_meta(state: ServiceState, event: BackendMetaSet) -> None:
    """Other backend meta; it makes nothing ready."""
    partition = state.changing(event.partition)
    partition.grid.patch(partition.touch(event.indexes), event.cells)


def produce(state: ServiceState, event: Produced) -> None:
    """Fields are ready for these rows: tasks that lack nothing else of them can take them."""
    partition = state.changing(event.partition)
    rows = partition.touch(event.indexes)
    end_times(state, partition, rows)
    width, known = partition.grid.status.width, len(partition.fields)
    bits = partition.grid.produce(rows, event)
    partition.drop_supplies_of_width(width)
    partition.supplies.produced(rows, bits)
    if len(partition.fields) > known:
        partition.supplies.tell_all()


def revoke(state: ServiceState, event: Revoked) -> None:
    """Cells are not ready any more; leases of their rows stay."""
    partition = state.changing(event.partition)
    rows = partition.touch(event.indexes)
    fields = [partition.fields[name] for name in event.fields]
    partition.grid.revoke(rows, fields, partition.revision)
    partition.supplies.revoked(rows)


def time(state: ServiceState, event: Timed) -> None:
    """Rows without a field have so long to get one."""
    partition = state.changing(event.partition)
    rows = partition.rows.locate(unpack(event.indexes))
    end_times(state, partition, rows)
    partition.ttls.begin(rows, event, partition.revision, partition.rows.capacity)
    state.ttl_deadlines.put((event.partition, state.revision), state.clock() + event.length_s)


def end_times(state: ServiceState, partition: Partition, rows: Ints) -> None:
    """These rows have a field now, or another time, or are gone: batches that no row points to have no deadline."""
    ended = partition.ttls.end(rows)
    state.ttl_deadlines.discard((partition.partition_id, number) for number in ended)
