"""Partitions: put, patch, seal, get, await, list, delete."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice

from core.engine import Engine
from core.errors import PartitionConflict, PartitionSealed, PreconditionFailed
from core.events import AnyEvent, Limited, Limits, PartitionDeleted, PartitionMade, PartitionSet, Sealed, Settings
from core.names import check_fields
from core.reading.cursors import cursor_for, start_of
from core.state.cells.fields import Field
from core.state.partition import NO_SETTINGS, Partition
from core.writing.schemas import DeclarationIn, declared

from .parked import Parked


@dataclass(frozen=True, slots=True)
class Summary:
    """A partition as GET answers it. `produced` per field, (consumed, leased, dead) per task."""

    partition_id: str
    revision: int
    made: bool
    created_at: float
    limits: Limits
    is_sealed: bool
    num_samples: int
    fields: list[tuple[Field, int]]
    tasks: dict[str, tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class Line:
    """A partition in a list."""

    partition_id: str
    revision: int
    created_at: float
    is_sealed: bool
    num_samples: int
    num_fields: int


@dataclass(frozen=True, slots=True)
class Deleted:
    """The result of a deletion; `cleared`: how many samples were removed."""

    partition_id: str
    revision: int
    cleared: int


def put_partition(
    engine: Engine,
    partition_id: str,
    expected_samples: int | None,
    max_samples: int | None,
    max_attempts: int | None,
    fields: Mapping[str, DeclarationIn],
) -> Summary:
    """Make a partition, or give one its settings. Raises PartitionConflict, DtypeConflict, KindConflict."""
    check_fields(fields, "body.fields")
    declarations = tuple(declared(name, schema) for name, schema in sorted(fields.items()))
    settings = Settings(expected_samples, max_samples, max_attempts or NO_SETTINGS.max_attempts, declarations)
    partition = engine.partitions.get(partition_id)
    events: list[AnyEvent] = []
    if partition is None:
        events.append(PartitionMade(partition_id, engine.wall()))
    if settings != (partition.settings if partition else NO_SETTINGS):
        if partition:
            _check_settings(partition, settings)
        events.append(PartitionSet(partition_id, settings))
    if events:
        engine.commit(*events)
    return summarise(engine.partitions[partition_id], made=partition is None)


def _check_settings(partition: Partition, settings: Settings) -> None:
    if partition.settings != NO_SETTINGS:
        raise PartitionConflict(
            f"partition {partition.partition_id!r} has other settings: leave it, or delete it first"
        )
    for declaration in settings.fields:
        if declaration.name in partition.fields:
            partition.fields[declaration.name].check(declaration)


def patch_partition(
    engine: Engine, partition_id: str, expected_samples: int | None, max_samples: int | None, max_attempts: int | None
) -> Summary:
    """Change the limits that are given. Raises PartitionSealed for other expected samples of a sealed partition."""
    partition = engine.get(partition_id)
    old = partition.limits
    if partition.is_sealed and expected_samples not in (None, old.expected_samples):
        raise PartitionSealed("the partition is sealed, and expects the samples it has: leave expected_samples out")
    given = (expected_samples, max_samples, max_attempts)
    now = (old.expected_samples, old.max_samples, old.max_attempts)
    limits = Limits(*(old if new is None else new for new, old in zip(given, now, strict=True)))  # type: ignore[arg-type]
    if limits != old:
        engine.commit(Limited(partition_id, limits))
    return summarise(partition)


def seal_partition(engine: Engine, partition_id: str) -> Summary:
    """Let the partition take no more samples, and expect those it has. Repeated: no change."""
    partition = engine.get(partition_id)
    if not partition.is_sealed:
        engine.commit(Sealed(partition_id, partition.rows.held_count))
    return summarise(partition)


def get_partition(engine: Engine, partition_id: str) -> Summary:
    """Raises PartitionNotFound, PartitionCleared."""
    return summarise(engine.get(partition_id))


def await_partition(engine: Engine, partition_id: str, revision: int, wait_s: float) -> Summary | Parked[Summary]:
    """The partition once it has changed after `revision`, or as it is after `wait_s` seconds.

    Raises PartitionNotFound, PartitionCleared, also while it waits.
    """
    partition = engine.get(partition_id)
    if partition.revision > revision or not wait_s:
        return summarise(partition)

    def is_ripe() -> bool:
        partition = engine.partitions.get(partition_id)
        return partition is None or partition.revision > revision

    deadline = engine.clock() + wait_s
    return Parked(partition_id, deadline, is_ripe, lambda _: get_partition(engine, partition_id))


def summarise(partition: Partition, *, made: bool = False) -> Summary:
    """What GET and PUT answer."""
    return Summary(
        partition.partition_id,
        partition.revision,
        made,
        partition.created_at,
        partition.limits,
        partition.is_sealed,
        partition.rows.live_count,
        [(field, partition.grid.produced_live(field)) for field in partition.fields.values()],
        {name: (task.consumed, task.leased, task.dead) for name, task in partition.tasks.items()},
    )


def list_partitions(engine: Engine, prefix: str, limit: int, cursor: str | None) -> tuple[list[Line], str | None]:
    """In the order they were made; the cursor is the revision that made the last one listed."""
    after = start_of(cursor, "m")
    matching = (p for p in engine.partitions.values() if p.made_at > after and p.partition_id.startswith(prefix))
    page = list(islice(matching, limit + 1))
    lines = [
        Line(p.partition_id, p.revision, p.created_at, p.is_sealed, p.rows.live_count, len(p.fields))
        for p in page[:limit]
    ]
    return lines, cursor_for("m", page[limit - 1].made_at) if len(page) > limit else None


def delete_partition(engine: Engine, partition_id: str, matches: Callable[[int], bool] | None) -> Deleted:
    """Delete a partition, and commit its pending clears. An absent or deleted one: 0 cleared.

    Raises PreconditionFailed where `matches` (If-Match over the revision) returns False.
    """
    partition = engine.partitions.get(partition_id)
    if partition is None:
        return Deleted(partition_id, engine.revision_of(partition_id), 0)
    if matches is not None and not matches(partition.revision):
        raise PreconditionFailed(
            f"partition {partition_id!r} is at revision {partition.revision} now, which If-Match does not name "
            "(a weak tag names no state)"
        )
    cleared = partition.rows.held_count
    return Deleted(partition_id, engine.commit(PartitionDeleted(partition_id)), cleared)
