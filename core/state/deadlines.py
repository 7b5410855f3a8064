"""Deadlines by key, nearest first: the executor sleeps until the next one. Derived from events, never journaled."""

import heapq
from collections.abc import Iterable
from typing import Generic, TypeVar

K = TypeVar("K")
SLACK = 1024


class Deadlines(Generic[K]):
    """One time per key, in the engine clock's seconds. O(log n); replaced times are dropped once they are most."""

    __slots__ = ("_at", "_heap", "_made")

    def __init__(self) -> None:
        self._at: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._made = 0

    def put(self, key: K, at: float) -> None:
        """Set the key's time."""
        self._at[key] = at
        self._made += 1
        heapq.heappush(self._heap, (at, self._made, key))
        if len(self._heap) > 2 * len(self._at) + SLACK:
            self._heap = [one for one in self._heap if self._at.get(one[2]) == one[0]]
            heapq.heapify(self._heap)

    def discard(self, keys: Iterable[K]) -> None:
        """Remove the times of these keys."""
        for key in keys:
            self._at.pop(key, None)

    def next(self) -> float | None:
        """The nearest time."""
        while self._heap and self._at.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take(self, now: float) -> K | None:
        """Remove and return the key with the nearest time, if that has come. Of equal ones the one put first."""
        nearest = self.next()
        if nearest is None or nearest > now:
            return None
        key = heapq.heappop(self._heap)[2]
        del self._at[key]
        return key
