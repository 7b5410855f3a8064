"""Leases on the plain state, as contract#leases tells them: who holds what, until when, and what becomes of it.

Time is a number that `expire` is told. The leases that have run out end as one change, and so do a dead worker's.
"""

import copy
from collections.abc import Sequence

from tests.model.memory import Fetch
from tests.model.model import Plain
from tests.model.plain import ACCEPTED, LOST, OPEN, REJECTED, RELEASED
from tests.model.said import Refusal
from tests.model.state import Lease, State
from tests.model.tasks import Task

TOO_OFTEN = "max-attempts"


class WithLeases(Plain):
    """The plain model with leases."""

    def lease(self, name: str, indexes: Sequence[int], lease: Lease, fetch: Fetch | None = None) -> None:
        """A claim with `ack: explicit` handed these rows out."""
        after = copy.deepcopy(self.state)
        task = after.partitions[name].tasks.setdefault(lease.task, Task())
        for index in indexes:
            task.leased[index] = lease.number
            task.attempts[index] = task.attempts.get(index, 0) + 1
        lease.fates = dict.fromkeys(indexes, OPEN)
        lease.attempts = {index: task.attempts[index] for index in indexes}
        lease.began, lease.deadline = self.now, self.now + lease.length
        after.leases[lease.number] = lease
        if fetch is not None:
            fetch.note(task, lease.number, lease)
        if not indexes:
            after.close([lease])
        self._settle(after, name)
        assert lease.number == self.revision

    def find_lease(self, number: int, token: str | None = None) -> Lease:
        """Refused where there is none, or the token is not its own."""
        lease = self.state.leases.get(number) or self.state.closed.get(number)
        if lease is None:
            raise Refusal(["claim-not-found"])
        if token not in (None, lease.token):
            raise Refusal(["lease-lost"], lease.fates)
        return lease

    def ack(
        self,
        number: int,
        token: str,
        accept: list[int] | None,
        release: list[int],
        reject: dict[int, str],
        counts: bool = False,
    ) -> tuple[int, int, int, int]:
        """(accepted, released, rejected, open)."""
        lease = self.find_lease(number, token)
        named = {RELEASED: release, REJECTED: list(reject)}
        named[ACCEPTED], lost = rest(lease, named) if accept is None else (accept, [])
        check(lease, named, lost)
        after = copy.deepcopy(self.state)
        fresh = {i: fate for fate, rows in named.items() for i in rows if lease.fates[i] == OPEN}
        if fresh:
            settle(after, after.leases[number], fresh, reject, counts=counts)
        self._settle(after, lease.partition)
        return len(named[ACCEPTED]), len(release), len(reject), len(self.find_lease(number).open)

    def extend(self, number: int, token: str, length: float) -> Lease:
        """It ends `length` from now; a change, unless it never had a row."""
        lease = self.find_lease(number, token)
        if not lease.fates:
            return lease
        if not lease.open:
            raise Refusal(["lease-lost"], not_settled(lease) or lease.fates)
        lease.length, lease.deadline = length, self.now + length
        self.revision += 1
        self.state.partitions[lease.partition].revision = self.revision
        return lease

    def release_worker(self, worker: str) -> tuple[int, list[int]]:
        """(rows let go, numbers of the claims they were of)."""
        held = [lease for lease in self.state.leases.values() if lease.worker == worker]
        if held:
            self._let_go(held)
        return sum(len(lease.open) for lease in held), [lease.number for lease in held]

    def expire(self) -> None:
        """Leases whose time is up end."""
        due = [lease for lease in self.state.leases.values() if lease.deadline <= self.now]
        if due:
            self._let_go(sorted(due, key=lambda one: (one.deadline, one.number)))

    def _let_go(self, held: list[Lease]) -> None:
        after = copy.deepcopy(self.state)
        for lease in held:
            settle(after, after.leases[lease.number], dict.fromkeys(lease.open, LOST), {}, counts=True)
        self._settle(after, held[0].partition, others=[lease.partition for lease in held])

    def restart(self) -> None:
        """Each lease has its full length again."""
        for lease in [*self.state.leases.values(), *self.state.closed.values()]:
            lease.began, lease.deadline = self.now, self.now + lease.length


def rest(lease: Lease, named: dict[str, list[int]]) -> tuple[list[int], list[int]]:
    """What "all" means: whatever is open and not named elsewhere; said again, the same rows, and none may be lost."""
    left = [index for index in lease.fates if not any(index in rows for rows in named.values())]
    still = [index for index in left if lease.fates[index] == OPEN]
    lost = [index for index in left if lease.fates[index] == LOST]
    return (still, []) if still else ([index for index in left if lease.fates[index] == ACCEPTED], lost)


def not_settled(lease: Lease) -> list[int]:
    """Rows that were taken from the token before it said what became of them."""
    return [index for index, fate in lease.fates.items() if fate == LOST]


def check(lease: Lease, named: dict[str, list[int]], lost: list[int]) -> None:
    """Refused: a row twice, a row of another claim, a part of a group, a row that is not this token's to settle."""
    everything = [index for rows in named.values() for index in rows]
    if len(set(everything)) < len(everything) or not lease.fates.keys() >= set(everything):
        raise Refusal(["invalid-request"])
    codes = {"invalid-request"} if any(breaks_a_group(lease, rows) for rows in named.values()) else set()
    if not everything and not lease.open:
        lost = not_settled(lease) or list(lease.fates)
    lost = lost + [index for fate, rows in named.items() for index in rows if lease.fates[index] not in (OPEN, fate)]
    codes |= {"lease-lost"} if lost else set()
    if codes:
        raise Refusal(codes, lost)


def breaks_a_group(lease: Lease, rows: list[int]) -> bool:
    """Groups settle whole: what the lease still has of them."""
    order = list(lease.fates)
    for at in range(0, len(order), lease.size):
        group = {index for index in order[at : at + lease.size] if lease.fates[index] != LOST}
        if group & set(rows) and not group <= set(rows):
            return True
    return False


def settle(after: State, lease: Lease, fates: dict[int, str], reasons: dict[int, str], *, counts: bool) -> None:
    """Rows of an open lease are consumed, dead, or free again unless they were out as often as they may.

    Not `counts`: a release takes the attempt back, whatever they may.
    """
    partition = after.partitions[lease.partition]
    task = partition.tasks[lease.task]
    for index, fate in fates.items():
        lease.fates[index] = fate
        del task.leased[index]
        if fate == ACCEPTED:
            task.consumed.add(index)
        elif fate == REJECTED:
            task.dead[index] = reasons[index]
        elif not counts:
            task.take_back(index)
        elif lease.attempts[index] >= partition.attempts:
            task.dead[index] = TOO_OFTEN
    after.close([lease])
