"""Parked calls: by partition, oldest first, tried again when a change may serve them or their deadline comes."""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from core.operations.parked import Parked
from core.state import bounded_dict
from core.state.kept_replies import Keyed
from core.state.partition import Partition
from core.state.supply.news import Lack, News

from .watch import Watch


class Waiter(Protocol):
    """What the lot needs of a call: that it is hashable, and its Idempotency-Key if it has one."""

    keyed: Keyed | None

    def __hash__(self) -> int: ...


MAX_ABSENT = 1000
W = TypeVar("W", bound=Waiter)


@dataclass(slots=True)
class _Waiting(Generic[W]):
    """The calls of one partition, by number, and which of them to look at."""

    calls: dict[int, tuple[W, Parked[object]]] = field(default_factory=dict)
    watch: Watch = field(default_factory=Watch)


@dataclass(slots=True)
class _Place:
    """The place of a call in its partition's order: lower numbers are tried first."""

    partition: str
    number: int
    has_deadline: bool = False


class ParkingLot(Generic[W]):
    """All parked calls of the service."""

    def __init__(self) -> None:
        self._by_partition: dict[str, _Waiting[W]] = {}
        self._places: dict[W, _Place] = {}
        self._by_key: dict[str, W] = {}
        self._absent: dict[W, None] = {}  # calls whose callers have gone, oldest first
        self._deadlines: list[tuple[float, int, W]] = []
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._places)

    def park(self, call: W, parked: Parked[object], lack: Lack | None = None) -> None:
        """Park `call` for what it lacks, or for any change; one that is parked already keeps its place in the order."""
        self._sequence += 1
        place = self._places.get(call)
        if place is None:
            place = self._places[call] = _Place(parked.partition, self._sequence)
        if not place.has_deadline:
            place.has_deadline = True
            heapq.heappush(self._deadlines, (parked.deadline, self._sequence, call))
        waiting = self._by_partition.setdefault(place.partition, _Waiting())
        waiting.calls[place.number] = (call, parked)
        waiting.watch.put(place.number, lack)
        if call.keyed is not None:
            self._by_key[call.keyed.key] = call

    def find(self, key: str) -> W | None:
        """The call that waits under this key."""
        return self._by_key.get(key)

    def replace(self, old: W, new: W) -> None:
        """Put `new`, of the same key, in the place of `old`, until it leaves or is parked with its own deadline."""
        self._absent.pop(old, None)
        place = self._places.pop(old)
        self._places[new] = _Place(place.partition, place.number)
        calls = self._by_partition[place.partition].calls
        calls[place.number] = (new, calls[place.number][1])
        if new.keyed is not None:
            self._by_key[new.keyed.key] = new

    def caller_left(self, call: W) -> None:
        """Hand out nothing to `call` any more. A call with a key keeps its place until its wait is over: a gateway that
        gave up on the wait sends the same call again.
        """
        if call.keyed is None:
            self.leave(call)
        elif call in self._places:
            bounded_dict.put(self._absent, call, None, MAX_ABSENT, self.leave)

    def is_absent(self, call: W) -> bool:
        """Its caller has gone."""
        return call in self._absent

    def leave(self, call: W) -> bool:
        """Remove `call`, which is answered or whose client has gone; False if it was not parked."""
        place = self._places.pop(call, None)
        if place is None:
            return False
        self._absent.pop(call, None)
        if call.keyed is not None:
            del self._by_key[call.keyed.key]
        waiting = self._by_partition[place.partition]
        del waiting.calls[place.number]
        waiting.watch.leave(place.number)
        if not waiting.calls:
            del self._by_partition[place.partition]
        return True

    def has(self, name: str) -> bool:
        """Whether a call waits for this partition."""
        return name in self._by_partition

    def tell_no_more(self, partition: Partition | None) -> None:
        """Nobody waits for this partition, so that it need not say what changes do."""
        if partition is not None:
            partition.supplies.news = None

    def due(self, name: str, partition: Partition | None) -> list[tuple[W, Parked[object]]]:
        """Calls that what happened in a partition (None: it is gone) may serve and whose callers are there, oldest
        first. Who is looked at in vain must be parked or put again. There is one at least that waits for it.
        """
        waiting = self._by_partition[name]
        numbers = self._numbers(waiting, partition)
        found = waiting.calls.values() if numbers is None else [waiting.calls[number] for number in sorted(numbers)]
        return [one for one in found if one[0] not in self._absent]

    def _numbers(self, waiting: _Waiting[W], partition: Partition | None) -> Iterable[int] | None:
        if partition is None:
            return None
        news = partition.supplies.news or News()
        partition.supplies.news = News(is_general=False)
        return waiting.watch.due(partition, news)

    def put(self, call: W, lack: Lack | None) -> None:
        """`call` was looked at in vain, and lacks this now."""
        place = self._places[call]
        self._by_partition[place.partition].watch.put(place.number, lack)

    def expired(self, now: float) -> Iterable[tuple[W, Parked[object]]]:
        """Calls whose deadline has come, one by one; the caller answers each or parks it again."""
        while self._deadlines and self._deadlines[0][0] <= now:
            call = heapq.heappop(self._deadlines)[2]
            place = self._places.get(call)
            if call in self._absent:
                self.leave(call)
            elif place is not None:
                yield self._by_partition[place.partition].calls[place.number]

    def next_deadline(self) -> float | None:
        """The nearest deadline; None without one."""
        while self._deadlines and self._deadlines[0][2] not in self._places:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def all(self) -> list[W]:
        """All parked calls, oldest first within a partition."""
        return list(self._places)
