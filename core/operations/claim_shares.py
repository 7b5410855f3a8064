"""Claims by samplers with memory: what a key of it has for the claim that asks. It decides; the claim commits.

A key that nothing is known of takes rows for all its shares. One that is known gives its share again: the same claim
while its lease lives or its rows are consumed, what is held of it under a new one, and never other rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from core.arrays import Flags, Ints, pack
from core.errors import Invalid, Refused
from core.events import Allotted, ShareTerms
from core.samplers.by_rank import ByRank
from core.state.leases import Lease
from core.state.partition import Partition
from core.state.sampler_memory import Memory, Share
from core.state.supply.supply import Supply
from core.state.transitions import ACCEPTED, CONSUMED
from core.writing.missing_rows import check_indexes

from .claim_request import ClaimRequest

Take = Callable[[], Ints | None]
GIVEN_OUT = 2**63 - 1  # every index of a share was


@dataclass(frozen=True, slots=True)
class Chosen:
    """Row numbers for a claim. `share`: their number, 0 for none; `first`: what comes before, where the key is new.

    `claim`: the number of the claim that has them already, with its lease: nothing is to be done. Not whole: groups of
    the share lost rows that are dead, so that its rows settle each for itself.
    """

    rows: Ints
    share: int = 0
    first: tuple[Allotted, ...] = ()
    claim: int = 0
    lease: Lease | None = None
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class ShareRequest:
    """A claim by `sampler`, which has memory; no supply: a field is unknown."""

    partition: Partition
    supply: Supply | None
    request: ClaimRequest
    sampler: ByRank

    @property
    def memory(self) -> Memory | None:
        """The memory of the task, if it has this sampler's key."""
        task = self.partition.tasks.get(self.request.task)
        memory = None if task is None else task.memory
        return memory if memory is not None and self.sampler.key in memory.allotments else None

    @property
    def is_known(self) -> bool:
        """A claim with this key has been answered before."""
        return self.memory is not None

    def choose(self, take: Take, least: int) -> Chosen | None:
        """The rows; None while there are fewer than `least` for all shares together, or none to go out again.

        Raises Invalid for other terms, SampleCleared, SampleClearing.
        """
        share = self.remembered()
        if share is not None:
            return self._again(*share)
        rows = take()
        return None if rows is None else self._allot(rows, least)

    def remembered(self) -> tuple[int, Share] | None:
        """The share of this key and its number; None where the key is new. Raises Invalid for other terms."""
        memory = self.memory
        if memory is None:
            return None
        known = memory.allotments[self.sampler.key]
        self._check(known.terms)
        number = known.first + self.sampler.place
        return number, memory.shares[number]

    def _check(self, known: ShareTerms) -> None:
        terms = self.request.terms(self.sampler)
        pairs = (
            ("body.fields", set(known.fields), set(terms.fields)),
            ("body.batch_size", known.batch_size, terms.batch_size),
            ("body.ack", known.ack, terms.ack),
            *self._arguments(known.sampler, terms.sampler),
        )
        wrong = [
            (loc, f"is {_text(now)}, and the first claim of this rank and batch said {_text(was)}")
            for loc, was, now in pairs
            if was != now
        ]
        if wrong:
            raise Invalid(f"{wrong[0][0]}: {wrong[0][1]}: say the same, or take another batch_index", errors=wrong)

    def _arguments(self, known: bytes, said: bytes) -> Iterator[tuple[str, object, object]]:
        """Where an argument is said, what it was and what it is."""
        if known == said:
            return
        for name, was, now in zip(self.sampler.terms, *map(self.sampler.told, (known, said)), strict=True):
            yield f"body.sampler.{name}", was, now

    def _allot(self, rows: Ints, least: int) -> Chosen | None:
        step = self.sampler.ranks * self.sampler.group_size
        if least > 1:  # else these are the last ones of a sealed partition, which all go out
            rows = rows[: len(rows) // step * step]
        if len(rows) < least:
            return None
        shares = self.sampler.split(self.partition, rows)
        name, task = self.request.task, self.partition.tasks.get(self.request.task)
        first = len(task.memory.shares) + 1 if task and task.memory else 1
        indexes = [pack(self.partition.rows.global_index[share]) for share in shares]
        terms = self.request.terms(self.sampler)
        allotted = Allotted(self.partition.partition_id, name, self.sampler.key, terms, indexes)
        return Chosen(shares[self.sampler.place], first + self.sampler.place, (allotted,))

    def _again(self, number: int, share: Share) -> Chosen | None:
        if share.is_broken:
            self._locate(share.indexes)
        task, lease = self.partition.tasks[self.request.task], share.lease
        if share.claim and (lease is None or not lease.is_closed or not len(lease.indexes)):
            return self._replay(share)
        rows = self.partition.rows.locate_held(share.indexes)
        is_held = task.is_held(rows)
        held = self._locate(share.indexes[is_held])
        if len(held) or lease is None:
            is_whole = self._are_whole(is_held)
            return Chosen(held, number, is_whole=is_whole) if self._is_ready(held) else None
        was_accepted = (lease.fate == ACCEPTED).any() or (task.state[rows] == CONSUMED).any()
        return self._replay(share) if was_accepted else None  # else all is dead

    def _replay(self, share: Share) -> Chosen:
        indexes = share.indexes if share.lease is None else share.lease.indexes
        return Chosen(self._locate(indexes), claim=share.claim, lease=share.lease)

    def _locate(self, indexes: Ints) -> Ints:
        rows = self.partition.rows.locate(indexes)
        if not rows.all():
            check_indexes(self.partition.rows, indexes[rows == 0], GIVEN_OUT, skip=False)
        return rows

    def _are_whole(self, held: Flags) -> bool:
        """Of each group all rows are held, or none."""
        groups = held.reshape(-1, self.sampler.group_size)
        return bool((groups.all(axis=1) == groups.any(axis=1)).all())

    def _is_ready(self, rows: Ints) -> bool:
        """A field may have been revoked since the split."""
        if not len(rows):
            return True
        return self.supply is not None and bool(self.partition.grid.status.complete(rows, self.supply.mask).all())

    def is_answered(self) -> bool:
        """The key is known, and there is something to say."""
        try:
            share = self.remembered()
            return share is not None and self._again(*share) is not None
        except Refused:
            return True


def _text(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, list):  # a path
        return ".".join(value)
    return ", ".join(sorted(map(str, value))) if isinstance(value, set) else str(value)
