"""Claiming: rows whose requested fields are all produced and that the task has not consumed, taken once.

Theory of operation. A claim is tried as it comes, and one that waits again when its partition changed and it is *ripe*.
Each try is one `ClaimTry`, which finds partition and supply once, and is asked in order: How many rows are *enough*? A
full batch, unless the sampler says fewer. Does the sampler *offer* that many? It counts before any row is looked at,
so a try that fails is cheap. Which rows does it *choose*? They are committed as one event, `Consumed` or `Leased`.

With too few rows a claim parks. When its time is up it takes `min_batch_size`, or is told what is blocking. In a sealed
partition the last rows are enough however few they are, and a claim that can never get those left is *over* at once.
A sampler with memory is asked through `shares`: a key that the task knows gives its rows again.

Whatever changes rows keeps the supplies up to date, so a claim costs its batch, not its partition.
"""

from dataclasses import dataclass
from functools import partial

from core.arrays import pack
from core.engine import Engine
from core.events import Consumed, Leased
from core.reading.batch import Batch, describe
from core.reading.sliced_batch import described
from core.samplers import Blocking
from core.slices import Sliced, after
from core.state.leases import Lease, claim_id

from . import claim_runs
from .claim_request import ClaimRequest
from .claim_shares import Chosen
from .claim_slices import Claiming, in_slices
from .claim_try import ClaimTry
from .claim_wait import ClaimWait, check_room
from .consumption import Counts, counts_of
from .parked import Outcome, Parked

__all__ = ["Answer", "ClaimRequest", "Claimed", "Explained", "NotClaimed", "claim", "claim_now", "explain_claim"]

_ABSENT = Blocking("partition-absent", 0)


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


@dataclass(frozen=True, slots=True)
class Explained:
    """What a claim would find: `ready` rows before groups, what is `blocking`, and the task's account."""

    partition_id: str
    revision: int
    ready: int
    wanted: int
    counts: Counts
    blocking: list[Blocking]


def claim(engine: Engine, partition_id: str, request: ClaimRequest) -> Outcome[Answer]:
    """Take a full batch now, or park until there is one. Raises PartitionCleared, also while parked; TooManyWaiting."""
    answer = _claim_until(engine, partition_id, request, engine.clock() + request.wait_s)
    if isinstance(answer, Parked):
        check_room(engine, partition_id)
    return answer


def claim_now(engine: Engine, partition_id: str, request: ClaimRequest) -> Answer | Sliced[Answer]:
    """Take what there is, if it is enough. Raises PartitionCleared."""
    follows = claim_runs.follow(engine, partition_id, request)
    if follows is not None:
        return after(described(*follows, request.view), partial(_told, request, engine.revision))
    found = _try(engine, partition_id, request)
    if found is None:
        return NotClaimed(partition_id, 0, None, request.fields, 0, request.wanted, False, [_ABSENT])
    chosen = found.choose(min(request.least, found.enough()))
    return _refuse(found) if chosen is None else _hand_out(engine, found, chosen)


def explain_claim(engine: Engine, partition_id: str, request: ClaimRequest) -> Explained:
    """Why a claim would get what it would get; changes nothing. Raises PartitionCleared."""
    found = _try(engine, partition_id, request)
    if found is None:
        return Explained(partition_id, 0, 0, request.wanted, Counts(0, 0, 0, 0, False), [_ABSENT])
    partition, counts = found.partition, counts_of(found.partition, request.task)
    return Explained(partition_id, partition.revision, found.ready(), request.wanted, counts, found.blocking())


def _try(engine: Engine, partition_id: str, request: ClaimRequest) -> ClaimTry | None:
    """None while there is no such partition."""
    partition = engine.find(partition_id)
    return None if partition is None else ClaimTry.of(partition, request)


def _claim_until(engine: Engine, partition_id: str, request: ClaimRequest, deadline: float) -> Outcome[Answer]:
    found = _try(engine, partition_id, request)
    if found is not None:
        chosen = found.choose(found.enough())
        if chosen is not None:
            return _hand_out(engine, found, chosen)
        if found.is_over():
            return _refuse(found)
    return _park(engine, partition_id, request, deadline, found)


def _park(
    engine: Engine, partition_id: str, request: ClaimRequest, deadline: float, found: ClaimTry | None
) -> Parked[Answer]:
    until: Claiming[Answer | Parked[Answer]] = partial(_claim_until, deadline=deadline)
    later: Claiming[Answer | Parked[Answer]] = in_slices(until)

    def retry(is_last: bool) -> Outcome[Answer]:
        if is_last:
            return in_slices(claim_now)(engine, partition_id, request)
        return later(engine, partition_id, request)

    wait = ClaimWait(engine, partition_id, request, found)
    return Parked(partition_id, deadline, wait.is_ripe, retry, wait.lacks)


def _hand_out(engine: Engine, found: ClaimTry, chosen: Chosen) -> Answer | Sliced[Answer]:
    """Commit the rows to the task, unless an earlier claim did, and describe them."""
    request, partition, view = found.request, found.partition, found.request.view
    indexes = partition.rows.global_index[chosen.rows]
    number = chosen.claim or engine.revision + 1
    if not chosen.claim:
        engine.commit(*chosen.first, _event(engine, found, chosen, number, pack(indexes)))
    batch = described(partition, chosen.rows, indexes, request.view)
    lease = chosen.lease or engine.leases.of(number)
    if lease is None:
        if not chosen.claim:
            claim_runs.begin(engine, partition, request)
        return after(batch, partial(_told, request, number))
    left_s = lease.left_s(engine.clock()) if chosen.claim else lease.length_s
    return after(batch, lambda b: Claimed(claim_id(number), request.task, b, lease.worker, lease, view.expand, left_s))


def _told(request: ClaimRequest, number: int, batch: Batch) -> Claimed:
    return Claimed(claim_id(number), request.task, batch, request.worker, expand=request.view.expand)


def _event(engine: Engine, found: ClaimTry, chosen: Chosen, number: int, indexes: bytes) -> Consumed | Leased:
    request, name = found.request, found.partition.partition_id
    if request.lease_s is None:
        return Consumed(name, request.task, indexes, chosen.share)
    size, token = request.sampler.group_size if chosen.is_whole else 1, engine.token()
    return Leased(name, request.task, indexes, number, token, request.worker, request.lease_s, size, chosen.share)


def _refuse(found: ClaimTry) -> NotClaimed:
    """Nothing goes out, and why."""
    partition, request = found.partition, found.request
    nothing = partition.rows.global_index[:0]
    stranded = found.stranded()
    return NotClaimed(
        partition.partition_id,
        partition.revision,
        describe(partition, nothing, nothing, request.view),
        request.fields,
        found.ready(),
        request.wanted,
        found.is_done() or stranded > 0,
        found.blocking(),
        stranded,
    )
