"""Claiming: rows whose requested fields are all produced and that the task has not consumed, taken once.

A claim that finds too little parks until data comes; it costs its batch, not its partition.
One verb, from its check to its parked retry, hence its length.
"""

from collections.abc import Callable
from dataclasses import dataclass

from core.arrays import Ints, pack
from core.engine import Engine
from core.errors import Invalid
from core.events import Consumed, Leased, ShareTerms
from core.names import check_fields
from core.reading.batch import Batch, View, describe
from core.reading.blocking import explain
from core.reading.sealed import is_last, stranded
from core.samplers import Blocking, ByRank, Sampler
from core.samplers.own import Own
from core.state.leases import Lease, claim_id
from core.state.partition import Partition
from core.state.supply.supply import Supply
from core.state.where import Where

from .consumption import Counts, counts_of
from .parked import Parked
from .shares import Chosen, ShareRequest, memory_of


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """What a claim asks for. `min_batch_size` ≤ rows ≤ `batch_size`; fewer only once `wait_s` is over."""

    task: str
    fields: tuple[str, ...]
    batch_size: int
    min_batch_size: int
    wait_s: float
    sampler: Sampler
    view: View
    lease_s: float | None = None
    worker: str | None = None
    where: Where | None = None

    def __post_init__(self) -> None:
        check_fields(self.fields, "body.fields")
        if self.min_batch_size > self.batch_size:
            raise Invalid.at("body.min_batch_size", f"must be at most batch_size={self.batch_size}")
        self.sampler.check(self.batch_size)

    @property
    def batches(self) -> int:
        """Batches that are taken at once: one, or one for each rank."""
        return self.sampler.ranks if isinstance(self.sampler, ByRank) else 1

    def terms(self, sampler: ByRank) -> ShareTerms:
        """What is remembered of this claim beside its rows."""
        ack = "on_dispatch" if self.lease_s is None else "explicit"
        return ShareTerms(tuple(sorted(set(self.fields))), self.batch_size, ack, sampler.arguments())


class Answer:
    """What a claim ends in: Claimed or NotClaimed."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Claimed(Answer):
    """A batch was handed out, now or before; `left_s` of its lease are left."""

    claim_id: str
    task: str
    batch: Batch
    worker: str | None = None
    lease: Lease | None = None
    expand: bool = False
    left_s: float = 0.0


@dataclass(frozen=True, slots=True)
class NotClaimed(Answer):
    """Not enough: what is `ready` before groups, what was `wanted`, whether the task is `done`, what is in the way.

    `stranded`: rows that are left, and that this claim could never get; then it is done too.
    """

    partition_id: str
    revision: int
    batch: Batch | None
    fields: tuple[str, ...]
    ready: int
    wanted: int
    done: bool
    blocking: list[Blocking]
    stranded: int = 0


def claim(engine: Engine, partition_id: str, wanted: ClaimRequest) -> Answer | Parked[Answer]:
    """Take a full batch now, or park until there is one. Raises PartitionCleared, also while parked."""
    return _claim_until(engine, partition_id, wanted, engine.clock() + wanted.wait_s)


def claim_now(engine: Engine, partition_id: str, wanted: ClaimRequest) -> Answer:
    """Take what there is, if it is enough. Raises PartitionCleared."""
    enough = min(wanted.min_batch_size * wanted.batches, _enough(engine, partition_id, wanted))
    return _hand_out_last(engine, partition_id, wanted, enough) or _refuse(engine, partition_id, wanted)


def _claim_until(engine: Engine, partition_id: str, wanted: ClaimRequest, deadline: float) -> Answer | Parked[Answer]:
    claimed = _hand_out_last(engine, partition_id, wanted, _enough(engine, partition_id, wanted))
    if claimed is not None:
        return claimed
    partition = engine.find(partition_id)
    if _is_done(partition, wanted) or stranded(partition, wanted.task, wanted.fields):
        return _refuse(engine, partition_id, wanted)

    def retry(is_last: bool) -> Answer | Parked[Answer]:
        if is_last:
            return claim_now(engine, partition_id, wanted)
        return _claim_until(engine, partition_id, wanted, deadline)

    return Parked(partition_id, deadline, _ripeness(engine, partition_id, wanted), retry)


def _enough(engine: Engine, partition_id: str, wanted: ClaimRequest) -> int:
    """Rows that need not wait for more: a full batch, or the last ones of a sealed partition once all are ready."""
    partition, most = engine.find(partition_id), wanted.batch_size * wanted.batches
    supply = _supply(partition, wanted)
    if partition is None or supply is None:
        return most
    if isinstance(wanted.sampler, ByRank) and is_last(partition, supply, wanted.task):
        return 1  # a split takes what it can get of them
    return wanted.sampler.enough(partition, supply, most)


def _is_done(partition: Partition | None, wanted: ClaimRequest) -> bool:
    return partition is not None and partition.is_done(partition.tasks.get(wanted.task))


def _supply(partition: Partition | None, wanted: ClaimRequest) -> Supply | None:
    """What the task can take; None while the partition or one of the fields is unknown."""
    if partition is None or not all(name in partition.fields for name in wanted.fields):
        return None
    return partition.supply(wanted.task, tuple(sorted(set(wanted.fields))), wanted.where)


def _take(partition: Partition, supply: Supply | None, wanted: ClaimRequest, enough: int) -> Ints | None:
    if supply is None or wanted.sampler.offers(partition, supply) < enough:
        return None
    rows = wanted.sampler.take(partition, supply, wanted.batch_size * wanted.batches)
    return rows if len(rows) >= enough else None


def _hand_out_last(engine: Engine, partition_id: str, wanted: ClaimRequest, enough: int) -> Claimed | None:
    """At least `enough` rows; whatever there is where no more is to come."""
    claimed = _hand_out(engine, partition_id, wanted, enough)
    partition = engine.find(partition_id)
    if claimed is not None or partition is None or not is_last(partition, _supply(partition, wanted), wanted.task):
        return claimed
    return _hand_out(engine, partition_id, wanted, 1)


def _hand_out(engine: Engine, partition_id: str, wanted: ClaimRequest, enough: int) -> Claimed | None:
    partition = engine.find(partition_id)
    chosen = None if partition is None else _choose(partition, wanted, enough)
    if partition is None or chosen is None:
        return None
    indexes = partition.rows.global_index[chosen.rows]
    number = chosen.claim or engine.revision + 1
    if not chosen.claim:
        handed_out = _handed_out(engine, partition_id, wanted, number, pack(indexes), chosen)
        engine.commit(*chosen.first, handed_out)
    batch = describe(partition, chosen.rows, indexes, wanted.view)
    lease = chosen.lease or engine.leases.of(number)
    if lease is None:
        return Claimed(claim_id(number), wanted.task, batch, wanted.worker, expand=wanted.view.expand)
    left_s = lease.left_s(engine.clock()) if chosen.claim else lease.length_s
    return Claimed(claim_id(number), wanted.task, batch, lease.worker, lease, wanted.view.expand, left_s)


def _choose(partition: Partition, wanted: ClaimRequest, enough: int) -> Chosen | None:
    """The rows to hand out, or the claim that has them already."""
    supply = _supply(partition, wanted)
    if isinstance(wanted.sampler, ByRank):
        asked = _asked(partition, wanted, wanted.sampler)
        return asked.choose(lambda: _take(partition, supply, wanted, enough), enough)
    rows = _take(partition, supply, wanted, enough)
    return None if rows is None else Chosen(rows)


def _asked(partition: Partition, wanted: ClaimRequest, sampler: ByRank) -> ShareRequest:
    return ShareRequest(partition, _supply(partition, wanted), wanted.task, sampler, wanted.terms(sampler))


def _handed_out(
    engine: Engine, partition_id: str, wanted: ClaimRequest, number: int, indexes: bytes, chosen: Chosen
) -> Consumed | Leased:
    if wanted.lease_s is None:
        return Consumed(partition_id, wanted.task, indexes, chosen.share)
    size, token = wanted.sampler.group_size if chosen.is_whole else 1, engine.token()
    return Leased(partition_id, wanted.task, indexes, number, token, wanted.worker, wanted.lease_s, size, chosen.share)


def _refuse(engine: Engine, partition_id: str, wanted: ClaimRequest) -> NotClaimed:
    partition = engine.find(partition_id)
    supply = _supply(partition, wanted)
    blocking = explain(partition, wanted.task, wanted.fields, wanted.sampler, supply)
    if partition is None:
        return NotClaimed(partition_id, 0, None, wanted.fields, 0, wanted.batch_size * wanted.batches, False, blocking)
    nothing = partition.rows.global_index[:0]
    batch = describe(partition, nothing, nothing, wanted.view)
    ready, most = _ready(partition, wanted), wanted.batch_size * wanted.batches
    left = stranded(partition, wanted.task, wanted.fields)
    done = _is_done(partition, wanted) or left > 0
    return NotClaimed(partition_id, partition.revision, batch, wanted.fields, ready, most, done, blocking, left)


def _ready(partition: Partition, wanted: ClaimRequest) -> int:
    """Rows this claim could be about, before groups: of a key that is known, only its own."""
    if isinstance(wanted.sampler, ByRank) and memory_of(partition, wanted.task, wanted.sampler) is not None:
        chosen = _asked(partition, wanted, wanted.sampler).choose(lambda: None, 0)
        return len(chosen.rows) if chosen else 0
    supply = _supply(partition, wanted)
    return supply.ready.count if supply else 0


@dataclass(frozen=True, slots=True)
class Explained:
    """What a claim would find: `ready` rows before groups, what is `blocking`, and the task's account."""

    partition_id: str
    revision: int
    ready: int
    wanted: int
    counts: Counts
    blocking: list[Blocking]


def explain_claim(engine: Engine, partition_id: str, wanted: ClaimRequest) -> Explained:
    """Why a claim would get what it would get; changes nothing. Raises PartitionCleared."""
    partition = engine.find(partition_id)
    return Explained(
        partition_id,
        partition.revision if partition else 0,
        _ready(partition, wanted) if partition else 0,
        wanted.batch_size * wanted.batches,
        counts_of(partition, wanted.task) if partition else Counts(0, 0, 0, 0, False),
        explain(partition, wanted.task, wanted.fields, wanted.sampler, _supply(partition, wanted)),
    )


def _ripeness(engine: Engine, partition_id: str, wanted: ClaimRequest) -> Callable[[], bool]:
    """Deleted, done, or as much on offer as can be had. An operator's sampler is asked by the retry alone."""
    if isinstance(wanted.sampler, Own):
        return lambda: True

    def is_ripe() -> bool:
        partition = engine.partitions.get(partition_id)
        if partition is None:
            return partition_id in engine.deleted
        is_over = _is_done(partition, wanted) or stranded(partition, wanted.task, wanted.fields) > 0
        return is_over or _is_on_offer(engine, partition, wanted)

    return is_ripe


def _is_on_offer(engine: Engine, partition: Partition, wanted: ClaimRequest) -> bool:
    if isinstance(wanted.sampler, ByRank) and memory_of(partition, wanted.task, wanted.sampler) is not None:
        return _asked(partition, wanted, wanted.sampler).is_answered()
    supply = _supply(partition, wanted)
    enough = _enough(engine, partition.partition_id, wanted)
    if is_last(partition, supply, wanted.task):
        enough = 1
    return supply is not None and wanted.sampler.offers(partition, supply) >= enough
