"""Runs of puts: puts of one new row each that follow each other, in one form and partition, are applied together.

Theory of operation. The first put of a form is an ordinary write, and begins a run. A further one is decided against
the partition and what the run holds: it has the same events, revision and refusals as if each had been applied at once.
Its change is put off; whoever asks for the partitions has all that was put off applied first, as one write
(core.apply.together). Whatever is not as the run expects is left to the ordinary write.
"""

from dataclasses import dataclass
from struct import Struct

from core.engine import Engine
from core.events import AnyEvent, CustomMetaSet, Grouped, Inserted, Produced
from core.names import check_keys
from core.state.cells.json_cells import EMPTY, NULL, CellChecker, Column, CustomMetaMode, json_values, patched
from core.state.cells.placements import Placement
from core.state.partition import Partition

from .forms import Form, OneRow
from .schemas import GroupIds, group_cells

_index = Struct("<q").pack


@dataclass(frozen=True, slots=True)
class Put:
    """A produce of one row by its key, which may be new."""

    partition_id: str
    keys: list[str]
    row: OneRow
    group_ids: GroupIds | None
    custom_meta: Column | None
    custom_meta_mode: CustomMetaMode


class PutRun:
    """What its puts have in common. `names`: keys (JSON strings) of those that are put off."""

    __slots__ = (
        "_backend",
        "_fixed",
        "_fixed_at",
        "_form",
        "_has",
        "_names",
        "_pack",
        "_partition",
        "_revision",
        "_signature",
    )  # fmt: skip

    def __init__(self, partition: Partition, form: Form, placement: Placement, events: list[AnyEvent]) -> None:
        """`events`: those of its first put, which is applied."""
        produced = events[-1]
        assert isinstance(produced, Produced)  # noqa: S101  (for the type checker: `begin` has looked)
        self._form, self._partition, self._revision = form, partition, partition.revision
        self._signature, self._backend = produced.signature, produced.backend
        self._pack = Struct(f"<{placement.width}i").pack
        self._fixed_at = placement.fixed_at.tolist()
        self._fixed = list(Struct(f"<{len(self._fixed_at)}i").unpack(placement.fixed_sizes))
        self._has = [type(event) for event in events]
        self._names: set[bytes] = set()

    def put(self, engine: Engine, put: Put) -> tuple[int, int] | None:
        """The revision and the index of a new row, put off. None: it is for the ordinary write. Raises as that does."""
        if put.row.form is not self._form or put.partition_id != self._partition.partition_id:
            return None
        if not self._is_current(engine) or [put.row.sizes[at] for at in self._fixed_at] != self._fixed:
            return None
        check_keys(put.keys, "body.keys")
        (name,) = json_values(put.keys)
        if name in self._names or name in self._partition.rows.by_key or not self._fits(len(engine.pending)):
            return None
        index = engine.next_index
        events = self._events(engine, put, name, index)
        if [type(event) for event in events] != self._has:
            return None
        self._revision = engine.put_off(self._partition, events)
        engine.next_index = index + 1
        self._names.add(name)
        return self._revision, index

    def _is_current(self, engine: Engine) -> bool:
        """Nothing but this run has changed the partition: whatever does gives it another revision."""
        partition = self._partition
        if partition.revision != self._revision:
            return False
        if engine.pending:
            return True
        self._names.clear()
        return engine.partitions.get(partition.partition_id) is partition

    def _fits(self, more: int) -> bool:
        most = self._partition.limits.max_samples
        return most is None or self._partition.rows.held_count + more < most

    def _events(self, engine: Engine, put: Put, name: bytes, index: int) -> list[AnyEvent]:
        """Those of the ordinary write of a new row, in its order."""
        partition_id, indexes = self._partition.partition_id, _index(index)
        events: list[AnyEvent] = [Inserted(partition_id, index, 1, [name])]
        group_ids = [NULL] if put.group_ids is None else group_cells(put.group_ids, 1)
        if group_ids != [NULL]:
            events.append(Grouped(partition_id, indexes, group_ids))
        meta = EMPTY if put.custom_meta is None else _meta(engine.cells, put.custom_meta, put.custom_meta_mode)
        if meta is not EMPTY:
            events.append(CustomMetaSet(partition_id, indexes, [meta]))
        events.append(Produced(partition_id, indexes, self._signature, self._pack(*put.row.sizes), self._backend))
        return events


def _meta(checker: CellChecker, column: Column, mode: CustomMetaMode) -> bytes:
    """The custom meta of a new row, EMPTY where the column gives none."""
    cells = checker.column(column, 1, "body.custom_meta", 2, patch=True)
    cell = cells if isinstance(cells, bytes) else cells[0]
    return patched(EMPTY, cell, "body.custom_meta[0]", checker.max_bytes, mode)


def follow(engine: Engine, put: Put) -> tuple[int, int] | None:
    """As `PutRun.put` of the run that there is."""
    run = engine.run
    return run.put(engine, put) if isinstance(run, PutRun) else None


def begin(engine: Engine, form: Form, events: list[AnyEvent]) -> None:
    """These events of a put are applied: puts of its form may be put off from here on, where nothing stands against it.

    They may change no schema and no constant, and the partition may have nothing that is to refuse a key.
    """
    partition = engine.partitions[events[0].partition]
    produced, rows = events[-1], partition.rows
    if not isinstance(events[0], Inserted) or not isinstance(produced, Produced):
        return
    if rows.tombstones or rows.clearing_names:
        return
    placement = partition.grid.placement(produced.signature)
    if placement is None or placement.turning or not placement.settled or placement.consts != produced.backend:
        return
    engine.run = PutRun(partition, form, placement, events)
