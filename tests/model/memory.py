"""The memory of samplers for a task, on plain values: rows that are set aside, and claims that are repeated.

As contract#sampler-memory says. A key's rows are in shares, one per rank that may ask.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.model.plain import Partition
    from tests.model.state import Lease
    from tests.model.tasks import Task

ACCEPTED = "accepted"


@dataclass
class Terms:
    """What all claims of a key say alike."""

    fields: frozenset[str]
    size: int
    ack: str
    arguments: dict[str, Any]


@dataclass
class Share:
    """Groups of `n`. `claim`: the number of the last one that had rows of it, with its lease if it had one.

    Broken: a row was cleared that was neither accepted nor dead; the others are everybody's, its key is refused.
    """

    indexes: list[int]
    n: int = 1
    claim: int = 0
    lease: "Lease | None" = None
    is_broken: bool = False


@dataclass
class Allotment:
    terms: Terms
    shares: list[Share]


@dataclass
class Fetch:
    """A claim takes the share in this place; `made`: the key was new."""

    key: str
    place: int
    made: Allotment | None = None

    def note(self, task: "Task", claim: int, lease: "Lease | None") -> None:
        if self.made is not None:
            task.memory[self.key] = self.made
        share = task.memory[self.key].shares[self.place]
        share.claim, share.lease = claim, lease


@dataclass
class Told:
    """The answer for a known key: refused with one of `codes`; these rows, of `claim` if it has them still,
    else under a new one, where groups of `size` settle together; or None, that there is nothing."""

    codes: set[str] = field(default_factory=set)
    rows: list[int] | None = None
    claim: int = 0
    lease: "Lease | None" = None
    size: int = 1


def told(partition: "Partition", task: "Task", share: Share, fields: frozenset[str]) -> Told:
    """The same claim while a row of it is open; then what ended unaccepted; then the last one again."""
    lease = share.lease
    if share.is_broken:
        return Told({"sample-cleared"})
    if share.claim and (lease is None or lease.open or not lease.fates):
        return replay(partition, share)
    there = partition.rows.keys() | partition.clearing.keys()
    held = [index for index in share.indexes if index in task.held & there]
    if not held and share.claim:
        return replay(partition, share) if was_accepted(task, share) else Told()
    if partition.clearing.keys() & held:
        return Told({"sample-clearing"})
    is_ready = all(partition.rows[index].has(name) for index in held for name in fields)
    groups = [set(share.indexes[at : at + share.n]) for at in range(0, len(share.indexes), share.n)]
    are_whole = all(group <= set(held) or group.isdisjoint(held) for group in groups)
    return Told(rows=held, size=share.n if are_whole else 1) if is_ready else Told()


def replay(partition: "Partition", share: Share) -> Told:
    """The last claim as it was, if all its rows are there."""
    rows = share.indexes if share.lease is None else list(share.lease.fates)
    absent = set(rows) - partition.rows.keys()
    codes = {"sample-clearing" if index in partition.clearing else "sample-cleared" for index in absent}
    return Told(codes) if codes else Told(rows=rows, claim=share.claim, lease=share.lease)


def was_accepted(task: "Task", share: Share) -> bool:
    """Not all that came of it is dead."""
    fates = share.lease.fates.values() if share.lease else ()
    return ACCEPTED in fates or not task.consumed.isdisjoint(share.indexes)
