"""Clears in two steps: plan (hides the rows, and lists where their bytes lie), then commit or abort."""

from dataclasses import dataclass
from itertools import islice

from core.arrays import Bits, Ints, pack, run_of
from core.engine import Engine
from core.errors import ClearClosed, ClearNotFound, Invalid
from core.events import ClearAborted, ClearCommitted, ClearPlanned
from core.limits import MAX_ROWS
from core.reading.cursors import cursor_for, start_of
from core.reading.selectors import SELECTORS, Selector, to_remove
from core.reading.sliced_batch import AT_ONCE
from core.slices import Sliced, after, at_once
from core.state.cells import encode
from core.state.cells.fields import Field
from core.state.cells.readiness import bit_column, is_set, reduced
from core.state.clears import Clear
from core.state.partition import Partition
from core.state.transitions import ABORTED, COMMITTED, PENDING, ClearState
from core.state.where import Where


@dataclass(frozen=True, slots=True)
class ClearPlan:
    """The rows of a clear in index order. JSON: a column of keys; per field what was written, and where it lies."""

    global_indexes: Ints
    keys: bytes
    fields: encode.Pieces


@dataclass(frozen=True, slots=True)
class SeenClear:
    """The present state of a clear. `plan`: while it is pending. `skipped`: indexes that another clear has already."""

    clear: Clear
    revision: int
    age_s: float
    plan: ClearPlan | None = None
    skipped: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ClearRequest:
    """Which rows to clear: a selector or `is_all`, and of those only the ones that pass `where`."""

    selector: Selector
    is_all: bool = False
    where: Where | None = None
    with_tombstones: bool = False

    def __post_init__(self) -> None:
        if self.selector.is_absent != self.is_all:
            raise Invalid.at("body", f"give {SELECTORS}, or all: true")


def plan_clear(
    engine: Engine, partition_id: str, request: ClearRequest, expand: bool = False
) -> SeenClear | Sliced[SeenClear]:
    """Hide the selected rows until commit or abort. Unknown ones are skipped. PartitionNotFound, PartitionCleared."""
    found = to_remove(engine, partition_id, request.selector, request.where)
    return after(found, lambda found: _plan_clear(engine, partition_id, request, expand, *found))


def _plan_clear(
    engine: Engine, partition_id: str, request: ClearRequest, expand: bool, rows: Ints, clearing: Ints
) -> SeenClear | Sliced[SeenClear]:
    partition = engine.partitions[partition_id]
    if len(rows) > MAX_ROWS:
        raise Invalid.at("body", f"means {len(rows)} samples: a clear has at most {MAX_ROWS}, name fewer")
    indexes = pack(partition.rows.global_index[rows])
    number = engine.revision + 1
    engine.commit(ClearPlanned(partition_id, number, indexes, request.with_tombstones, engine.wall()))
    return _seen(engine, engine.clears.pending[number], expand, tuple(clearing.tolist()))


def _seen(engine: Engine, clear: Clear, expand: bool, skipped: tuple[int, ...] = ()) -> SeenClear | Sliced[SeenClear]:
    revision, age_s = engine.revision_of(clear.partition_id), _age(engine, clear)
    if clear.state != PENDING:
        return SeenClear(clear, revision, age_s, None, skipped)
    plan = _plan(engine.partitions[clear.partition_id], clear, expand)
    return after(plan, lambda plan: SeenClear(clear, revision, age_s, plan, skipped))


def _age(engine: Engine, clear: Clear) -> float:
    return max(0.0, engine.wall() - clear.planned_at)


def _plan(partition: Partition, clear: Clear, expand: bool) -> ClearPlan | Sliced[ClearPlan]:
    """In slices where there are many rows: what is told is copied at once."""
    rows = partition.rows.locate_held(clear.indexes)
    at, fields, is_large = run_of(rows), list(partition.fields.values()), len(rows) > AT_ONCE
    keys, words = partition.keys_of(at), partition.grid.written(rows)
    if is_large:
        at, fields = slice(0, len(rows)), [field.picked(rows) for field in fields]
    steps = _told(clear.indexes, keys, words, fields, at, expand)
    return steps if is_large else at_once(steps)


def _told(
    indexes: Ints, keys: list[bytes], words: Ints, fields: list[Field], at: slice | Ints, expand: bool
) -> Sliced[ClearPlan]:
    all_have, some_have = (reduced_words.tolist() for reduced_words in reduced(words))
    told: list[tuple[bytes, encode.Pieces]] = []
    for field in fields:
        if is_set(some_have, field.bit) or field.backend.is_recorded(at):
            yield
            has = None if is_set(all_have, field.bit) else bit_column(words, field.bit)
            told.append((field.quoted, [_field(field, at, len(keys), has, expand)]))
    yield
    return ClearPlan(indexes, encode.column(keys, expand), encode.pieces(told))


def _field(field: Field, at: slice | Ints, rows: int, has: Bits | None, expand: bool) -> bytes:
    """`has` uint8 [rows]: which rows have the field; None when all do."""
    written = encode.bits(has, rows, expand)
    cells = field.backend.column(at, rows, has, expand)
    return b"".join((b'{"written":', written, b',"backend_meta":', *cells, b"}"))


def find(engine: Engine, name: str) -> Clear:
    """The clear of this name. Raises ClearNotFound."""
    clear = engine.clears.find(name)
    if clear is None:
        raise ClearNotFound(f"there is no clear {name!r}, or it was closed long ago")
    return clear


def commit_clear(engine: Engine, name: str) -> SeenClear:
    """Remove its rows for good. Repeated: no change. Raises ClearNotFound, ClearClosed."""
    return _close(engine, find(engine, name), COMMITTED)


def abort_clear(engine: Engine, name: str) -> SeenClear:
    """Make its rows live again. Repeated: no change. Raises ClearNotFound, ClearClosed."""
    return _close(engine, find(engine, name), ABORTED)


def _close(engine: Engine, clear: Clear, state: ClearState) -> SeenClear:
    if clear.state == PENDING:
        event = ClearCommitted if state == COMMITTED else ClearAborted
        engine.commit(event(clear.partition_id, clear.number))
    elif clear.state != state:
        raise ClearClosed(f"clear {clear.clear_id!r} is {clear.state}: nothing was changed")
    return SeenClear(clear, engine.revision_of(clear.partition_id), _age(engine, clear))


def get_clear(engine: Engine, name: str, expand: bool) -> SeenClear | Sliced[SeenClear]:
    """A clear, with its plan while it is pending. Raises ClearNotFound."""
    return _seen(engine, find(engine, name), expand)


def list_clears(
    engine: Engine, state: ClearState | None, prefix: str, limit: int, cursor: str | None
) -> tuple[list[tuple[Clear, float]], str | None]:
    """(clear, age in seconds) in the order planned: pending ones and the last closed; None: of any state.

    `prefix`: of partitions whose name begins so.
    """
    found = (
        clear
        for clear in engine.clears.after(start_of(cursor, "x"))
        if state in (None, clear.state) and clear.partition_id.startswith(prefix)
    )
    page = list(islice(found, limit + 1))
    more = cursor_for("x", page[limit - 1].number) if len(page) > limit else None
    return [(clear, _age(engine, clear)) for clear in page[:limit]], more
