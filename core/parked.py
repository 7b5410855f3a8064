"""Calls that wait: kept by partition, oldest first, looked at only when their partition changed or their time is up."""

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

R = TypeVar("R", covariant=True)


@dataclass(frozen=True, slots=True)
class Parked(Generic[R]):
    """An operation's answer when it must wait. Times are the engine clock's seconds.

    `is_ripe` is an O(1) test whether `retry(False)` could answer now; at the deadline `retry(True)` must.
    """

    partition: str
    deadline: float
    is_ripe: Callable[[], bool]
    retry: Callable[[bool], "R | Parked[R]"]


class Waiter(Protocol):
    """A call as the lot sees it: something hashable."""

    def __hash__(self) -> int: ...


W = TypeVar("W", bound=Waiter)


class ParkingLot(Generic[W]):
    """All parked calls of the service."""

    def __init__(self) -> None:
        self._by_partition: dict[str, dict[W, Parked[object]]] = {}
        self._places: dict[W, str] = {}
        self._deadlines: list[tuple[float, int, W]] = []
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._places)

    def park(self, call: W, parked: Parked[object]) -> None:
        """Keep `call`; one that is here already keeps its place in the order."""
        self._by_partition.setdefault(parked.partition, {})[call] = parked
        if call not in self._places:
            self._sequence += 1
            heapq.heappush(self._deadlines, (parked.deadline, self._sequence, call))
        self._places[call] = parked.partition

    def leave(self, call: W) -> bool:
        """`call` is answered or its client has gone; False if it was not here."""
        partition = self._places.pop(call, None)
        if partition is None:
            return False
        calls = self._by_partition[partition]
        del calls[call]
        if not calls:
            del self._by_partition[partition]
        return True

    def ripe(self, partition: str) -> Iterable[tuple[W, Parked[object]]]:
        """Calls of a changed partition that could be answered now, oldest first, each tested as its turn comes."""
        for call, parked in list(self._by_partition.get(partition, {}).items()):
            if parked.is_ripe():
                yield call, parked

    def expired(self, now: float) -> Iterable[tuple[W, Parked[object]]]:
        """Calls whose deadline has come."""
        while self._deadlines and self._deadlines[0][0] <= now:
            call = heapq.heappop(self._deadlines)[2]
            if call in self._places:
                yield call, self._by_partition[self._places[call]][call]

    def next_deadline(self) -> float | None:
        """When to look again, if no partition changes before."""
        while self._deadlines and self._deadlines[0][2] not in self._places:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def all(self) -> list[W]:
        """Everyone, oldest first within a partition."""
        return list(self._places)
