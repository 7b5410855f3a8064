"""Leases after the claim: ack (accept, release, reject), extend, look at them, let go of what a dead worker held."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from core.arrays import Ints, joined, pack, unpack
from core.engine import Engine
from core.errors import ClaimNotFound, Invalid, LeaseLost
from core.events import Extended, LeasesEnded, Settled
from core.state.leases import Lease, claim_id, fates_of
from core.state.partition import Partition
from core.state.transitions import ACCEPTED, LOST, OPEN, REJECTED, RELEASED

C = TypeVar("C", bound=np.generic)
TOO_OFTEN = "max-attempts"
AT_ONCE = 1024  # leases that end in one change by their time


@dataclass(frozen=True, slots=True)
class Ack:
    """What became of rows. `accept` None: whatever is still open and not named elsewhere.

    `counts`: the hand-out of the released rows stays one of their attempts; else it is taken back.
    """

    token: str
    accept: Sequence[int] | None
    release: Sequence[int]
    reject: Sequence[tuple[int, str]]
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Acked:
    """Rows by what became of them through this ack, and how many are still open."""

    partition_id: str
    revision: int
    accepted: int
    released: int
    rejected: int
    open: int


@dataclass(frozen=True, slots=True)
class SeenClaim:
    """A lease as others see it. Seconds."""

    lease: Lease
    open: int
    age_s: float
    expires_in_s: float


@dataclass(frozen=True, slots=True)
class Dead:
    """A row that the task will not get again; `key` is JSON or null."""

    global_index: int
    key: bytes
    reason: str
    attempts: int


def find(engine: Engine, name: str) -> Lease:
    """Raises ClaimNotFound."""
    lease = engine.leases.find(name)
    if lease is None:
        raise ClaimNotFound(f"there is no claim {name!r}, or it was closed long ago")
    return lease


def ack(engine: Engine, name: str, said: Ack) -> Acked:
    """Settle rows. Repeating one that was done gives the same answer. Raises ClaimNotFound, LeaseLost, Invalid."""
    lease = find(engine, name)
    _check_token(lease, said.token)
    _end_if_over(engine, lease)
    reasons = dict(said.reject)
    named = {RELEASED: _indexes(said.release), REJECTED: _indexes(reasons)}
    named[ACCEPTED], lost = _all_but(lease, named) if said.accept is None else (_indexes(said.accept), [])
    _check_named(lease, named, lost)
    fresh = {fate: indexes[np.isin(indexes, lease.open_rows())] for fate, indexes in named.items()}
    if any(map(len, fresh.values())):
        engine.commit(_settled(engine, lease, fresh, reasons, said.counts))
    counts = {fate: len(indexes) for fate, indexes in named.items()}
    return Acked(
        lease.partition_id,
        engine.revision_of(lease.partition_id),
        counts[ACCEPTED],
        counts[RELEASED],
        counts[REJECTED],
        len(lease.open_rows()),
    )


def _check_token(lease: Lease, token: str) -> None:
    if token != lease.token:
        raise LeaseLost("that is not this claim's token", global_indexes=lease.indexes.tolist())


def _indexes(given: Sequence[int] | dict[int, str]) -> Ints:
    return np.array(list(given), np.int64)


def _all_but(lease: Lease, named: dict[int, Ints]) -> tuple[Ints, list[int]]:
    """(rows that "all" means, rows it would mean but for their loss).

    The rows are those still open. Where none is, "all" is said again and means the same rows: that can only be
    answered if the token settled every one of them.
    """
    others = np.isin(lease.indexes, np.concatenate(list(named.values())))
    left, fates = lease.indexes[~others], lease.fate[~others]
    still = left[fates == OPEN]
    if len(still):
        return still, []
    return left[fates == ACCEPTED], left[fates == LOST].tolist()


def _lost_to(lease: Lease) -> list[int]:
    """The rows of a closed lease that its token did not settle; all of them where it settled every one."""
    if not lease.is_closed:
        return []
    lost: list[int] = lease.indexes[lease.fate == LOST].tolist()
    return lost or lease.indexes.tolist()


def _check_named(lease: Lease, named: dict[int, Ints], lost: list[int]) -> None:
    """`lost`: rows that are meant without being named. Raises Invalid, LeaseLost."""
    everything = np.concatenate(list(named.values()))
    ordered = np.sort(everything)
    if np.any(ordered[1:] == ordered[:-1]):
        raise Invalid.at("body", "names a row twice: accept, release or reject it")
    if not np.isin(everything, lease.indexes).all():
        raise Invalid.at("body", "names a row that this claim did not hand out")
    if not len(everything):
        lost = _lost_to(lease)
    for fate, indexes in named.items():
        _check_groups(lease, indexes)
        fates = _each(lease, lease.fate, indexes)
        lost += indexes[(fates != OPEN) & (fates != fate)].tolist()
    if lost:
        raise LeaseLost(global_indexes=lost)


def _check_groups(lease: Lease, indexes: Ints) -> None:
    """Groups settle whole: all that the lease still has of each. (Rows that it has not are told of as lost.)"""
    named = np.isin(lease.indexes, indexes).reshape(-1, lease.group_size)
    lost = (lease.fate == LOST).reshape(named.shape)
    if ((named & ~lost).any(axis=1) & ~(named | lost).all(axis=1)).any():
        raise Invalid.at("body", f"names a part of a group: name all {lease.group_size} rows of each")


def _settled(engine: Engine, lease: Lease, fresh: dict[int, Ints], reasons: dict[int, str], counts: bool) -> Settled:
    """The event: released rows have this attempt back. Where it counts, those handed out too often are dead."""
    released, worn = fresh[RELEASED], fresh[RELEASED][:0]
    if counts:
        released, worn = _worn(engine.partitions[lease.partition_id], lease, released)
    dead = np.concatenate([fresh[REJECTED], worn])
    why = [reasons.get(index, TOO_OFTEN) for index in dead.tolist()]
    accepted, back = pack(fresh[ACCEPTED]), pack(released)
    return Settled(lease.partition_id, lease.number, accepted, back, pack(dead), why, pack(worn), takes_back=not counts)


def _worn(partition: Partition, lease: Lease, indexes: Ints) -> tuple[Ints, Ints]:
    """(rows that may go out again, rows that have been out as often as they may)."""
    worn = _each(lease, lease.attempts, indexes) >= partition.limits.max_attempts
    return indexes[~worn], indexes[worn]


def _each(lease: Lease, column: npt.NDArray[C], indexes: Ints) -> npt.NDArray[C]:
    """What a column of the lease has for these indexes, which are all its own."""
    order = np.argsort(lease.indexes)
    return column[order[np.searchsorted(lease.indexes[order], indexes)]]


def _let_go(engine: Engine, leases: Sequence[Lease]) -> list[LeasesEnded]:
    """The events that end leases: expired, or their worker died. Either may be the fault of a sample, so it counts."""
    by_task: dict[tuple[str, str], list[Lease]] = {}
    for lease in leases:
        by_task.setdefault((lease.partition_id, lease.task), []).append(lease)
    return [_ended(engine.partitions[name], task, held) for (name, task), held in by_task.items()]


def _ended(partition: Partition, task: str, leases: Sequence[Lease]) -> LeasesEnded:
    """The event that ends leases of one task."""
    indexes = joined([lease.indexes for lease in leases], np.int64)
    if len(indexes) > len(leases):  # else each has one row, which is open
        indexes = indexes[fates_of(leases) == OPEN]
    attempts = partition.tasks[task].attempts_of(partition.rows.locate_held(indexes))
    is_worn = attempts >= partition.limits.max_attempts
    released, worn = indexes[~is_worn], indexes[is_worn]
    numbers = np.array([lease.number for lease in leases], np.int64)
    return LeasesEnded(partition.partition_id, task, pack(numbers), pack(released), pack(worn), TOO_OFTEN)


def expire(engine: Engine, now: float, most: int = AT_ONCE) -> None:
    """End the leases whose time is up, at most so many, as one change."""
    due = engine.leases.overdue(now, most)
    if due:
        engine.commit(*_let_go(engine, due))


def _end_if_over(engine: Engine, lease: Lease) -> None:
    """Its turn to end may not have come yet, but its holder has it no longer."""
    if engine.leases.is_over(lease):
        engine.commit(*_let_go(engine, [lease]))


def extend(engine: Engine, name: str, token: str, length_s: float) -> SeenClaim:
    """The lease ends `length_s` from now. Raises ClaimNotFound, LeaseLost."""
    lease = find(engine, name)
    _check_token(lease, token)
    _end_if_over(engine, lease)
    if not len(lease.indexes):  # an empty share: nothing to hold, nothing to lose
        return seen(engine, lease)
    if lease.is_closed:
        raise LeaseLost(global_indexes=_lost_to(lease))
    engine.commit(Extended(lease.partition_id, lease.number, length_s))
    return seen(engine, lease)


def seen(engine: Engine, lease: Lease) -> SeenClaim:
    """As it stands now."""
    now = engine.clock()
    return SeenClaim(lease, len(lease.open_rows()), now - lease.began, lease.left_s(now))


def get_claim(engine: Engine, name: str) -> SeenClaim:
    """Raises ClaimNotFound."""
    return seen(engine, find(engine, name))


def list_claims(
    engine: Engine, partition_id: str | None, task: str | None, worker: str | None, prefix: str = ""
) -> list[SeenClaim]:
    """Open claims of partitions whose name has the prefix, oldest first; None: any."""
    wanted = (partition_id, task, worker)
    return [
        seen(engine, lease)
        for lease in engine.leases.open.values()
        if lease.partition_id.startswith(prefix)
        and all(
            want is None or want == has
            for want, has in zip(wanted, (lease.partition_id, lease.task, lease.worker), strict=True)
        )
    ]


def release_worker(engine: Engine, worker: str) -> tuple[int, list[str]]:
    """(rows let go, claims) of a worker that died: one change for all."""
    held = [lease for lease in engine.leases.open.values() if lease.worker == worker]
    if not held:
        return 0, []
    ended = _let_go(engine, held)
    engine.commit(*ended)
    return sum(len(unpack(one.released)) + len(unpack(one.worn)) for one in ended), [
        claim_id(lease.number) for lease in held
    ]


def list_dead(engine: Engine, partition_id: str, task: str) -> tuple[Partition, list[Dead]]:
    """Rows that are dead for a task, by index. Raises PartitionNotFound, PartitionCleared."""
    partition = engine.get(partition_id)
    known = partition.tasks.get(task)
    if known is None or not known.reasons:
        return partition, []
    indexes = np.array(sorted(known.reasons), np.int64)
    rows = partition.rows.locate(indexes)
    indexes, rows = indexes[rows > 0], rows[rows > 0]  # those that are clearing are in no list
    keys = partition.keys_of(rows)
    attempts = known.attempts_of(rows).tolist()
    lines = zip(indexes.tolist(), keys, attempts, strict=True)
    return partition, [Dead(index, key, known.reasons[index], times) for index, key, times in lines]
