"""Claiming: rows whose requested fields are all produced and that the task has not consumed, taken once.

A claim that finds too little parks until data comes; it costs its batch, not its partition.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ..arrays import Ints, pack
from ..batch import Batch, View, describe
from ..blocking import explain
from ..engine import Engine
from ..errors import Invalid
from ..events import Consumed, Leased
from ..intake import check_fields
from ..leases import Lease, claim_id
from ..parked import Parked
from ..partition import Partition
from ..samplers import Blocking, Sampler
from ..samplers.own import Own
from ..supply import Supply
from ..where import Where
from .consumption import Counts, counts_of


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a claim asks for. `least` ≤ rows ≤ `most`; fewer than `most` only once `wait_s` is over."""

    task: str
    fields: tuple[str, ...]
    most: int
    least: int
    wait_s: float
    sampler: Sampler
    view: View
    lease_s: float | None = None
    worker: str | None = None
    where: Where | None = None

    def __post_init__(self) -> None:
        check_fields(self.fields, "body.fields")
        if self.least > self.most:
            raise Invalid.at("body.min_batch_size", f"must be at most batch_size={self.most}")
        self.sampler.check(self.most)


class Answer:
    """What a claim ends in: Claimed or NotClaimed."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Claimed(Answer):
    """A batch was handed out."""

    claim_id: str
    task: str
    batch: Batch
    worker: str | None = None
    lease: Lease | None = None
    expand: bool = False


@dataclass(frozen=True, slots=True)
class NotClaimed(Answer):
    """Not enough: what is `ready` before groups, what was `wanted`, whether the task is `done`, what is in the way."""

    partition_id: str
    revision: int
    batch: Batch | None
    fields: tuple[str, ...]
    ready: int
    wanted: int
    done: bool
    blocking: list[Blocking]


def claim(engine: Engine, partition_id: str, wanted: Wanted) -> Answer | Parked[Answer]:
    """Take a full batch now, or park until there is one. Raises PartitionCleared, also while parked."""
    return _claim_until(engine, partition_id, wanted, engine.clock() + wanted.wait_s)


def claim_now(engine: Engine, partition_id: str, wanted: Wanted) -> Answer:
    """Take what there is, if it is enough. Raises PartitionCleared."""
    enough = min(wanted.least, _enough(engine, partition_id, wanted))
    return _hand_out(engine, partition_id, wanted, enough) or _refuse(engine, partition_id, wanted)


def _claim_until(engine: Engine, partition_id: str, wanted: Wanted, deadline: float) -> Answer | Parked[Answer]:
    claimed = _hand_out(engine, partition_id, wanted, _enough(engine, partition_id, wanted))
    if claimed is not None:
        return claimed
    if _is_done(engine.find(partition_id), wanted):
        return _refuse(engine, partition_id, wanted)

    def retry(is_last: bool) -> Answer | Parked[Answer]:
        if is_last:
            return claim_now(engine, partition_id, wanted)
        return _claim_until(engine, partition_id, wanted, deadline)

    return Parked(partition_id, deadline, _ripeness(engine, partition_id, wanted), retry)


def _enough(engine: Engine, partition_id: str, wanted: Wanted) -> int:
    """Rows that need not wait for more: a full batch, or the last ones of a sealed partition once all are ready."""
    partition = engine.find(partition_id)
    supply = _supply(partition, wanted)
    if partition is None or supply is None:
        return wanted.most
    if partition.is_sealed and 0 < supply.ready.count == _open_rows(partition, supply, wanted.task) < wanted.most:
        return 1
    return wanted.sampler.enough(partition, supply, wanted.most)


def _open_rows(partition: Partition, supply: Supply, name: str) -> int:
    """Live rows that pass `where` and are neither consumed, leased nor dead."""
    if supply.sieve is not None:
        return supply.sieve.open.count
    task = partition.tasks.get(name)
    return partition.rows.live_count - (task.settled + task.leased if task else 0)


def _is_done(partition: Partition | None, wanted: Wanted) -> bool:
    return partition is not None and partition.is_done(partition.tasks.get(wanted.task))


def _supply(partition: Partition | None, wanted: Wanted) -> Supply | None:
    """What the task can take; None while the partition or one of the fields is unknown."""
    if partition is None or not all(name in partition.fields for name in wanted.fields):
        return None
    return partition.supply(wanted.task, tuple(sorted(set(wanted.fields))), wanted.where)


def _take(partition: Partition, supply: Supply, wanted: Wanted, enough: int) -> Ints | None:
    if wanted.sampler.offers(partition, supply) < enough:
        return None
    rows = wanted.sampler.take(partition, supply, wanted.most)
    return rows if len(rows) >= enough else None


def _hand_out(engine: Engine, partition_id: str, wanted: Wanted, enough: int) -> Claimed | None:
    partition = engine.find(partition_id)
    supply = _supply(partition, wanted)
    rows = None if partition is None or supply is None else _take(partition, supply, wanted, enough)
    if partition is None or rows is None:
        return None
    indexes = partition.rows.global_index[rows]
    number = engine.revision + 1
    engine.commit(_handed_out(engine, partition_id, wanted, number, pack(indexes)))
    batch = describe(partition, rows, indexes, wanted.view)
    lease = partition.leases.get(number)
    return Claimed(claim_id(number), wanted.task, batch, wanted.worker, lease, wanted.view.expand)


def _handed_out(engine: Engine, partition_id: str, wanted: Wanted, number: int, indexes: bytes) -> Consumed | Leased:
    if wanted.lease_s is None:
        return Consumed(partition_id, wanted.task, indexes)
    size = wanted.sampler.group_size
    return Leased(partition_id, wanted.task, indexes, number, engine.token(), wanted.worker, wanted.lease_s, size)


def _refuse(engine: Engine, partition_id: str, wanted: Wanted) -> NotClaimed:
    partition = engine.find(partition_id)
    supply = _supply(partition, wanted)
    blocking = explain(partition, wanted.task, wanted.fields, wanted.sampler, supply)
    if partition is None:
        return NotClaimed(partition_id, 0, None, wanted.fields, 0, wanted.most, False, blocking)
    nothing = partition.rows.global_index[:0]
    batch = describe(partition, nothing, nothing, wanted.view)
    ready = supply.ready.count if supply else 0
    done = _is_done(partition, wanted)
    return NotClaimed(partition_id, partition.revision, batch, wanted.fields, ready, wanted.most, done, blocking)


@dataclass(frozen=True, slots=True)
class Explained:
    """What a claim would find: `ready` rows before groups, what is `blocking`, and the task's account."""

    partition_id: str
    revision: int
    ready: int
    wanted: int
    counts: Counts
    blocking: list[Blocking]


def explain_claim(engine: Engine, partition_id: str, wanted: Wanted) -> Explained:
    """Why a claim would get what it would get; changes nothing. Raises PartitionCleared."""
    partition = engine.find(partition_id)
    supply = _supply(partition, wanted)
    return Explained(
        partition_id,
        partition.revision if partition else 0,
        supply.ready.count if supply else 0,
        wanted.most,
        counts_of(partition, wanted.task) if partition else Counts(0, 0, 0, 0, False),
        explain(partition, wanted.task, wanted.fields, wanted.sampler, supply),
    )


def _ripeness(engine: Engine, partition_id: str, wanted: Wanted) -> Callable[[], bool]:
    """Deleted, done, or as much on offer as was asked for. An operator's sampler is asked by the retry alone."""
    if isinstance(wanted.sampler, Own):
        return lambda: True

    def is_ripe() -> bool:
        partition = engine.partitions.get(partition_id)
        if partition is None:
            return partition_id in engine.deleted
        supply = _supply(partition, wanted)
        enough = _enough(engine, partition_id, wanted)
        if supply is not None and wanted.sampler.offers(partition, supply) >= enough:
            return True
        return _is_done(partition, wanted)

    return is_ripe
