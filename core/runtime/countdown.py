"""Counts rows that became ready, and names the calls that waited for that many."""

import heapq
from collections.abc import Iterator

_SLACK = 64


class Countdown:
    """Waiting calls by number, each with the count at which it is due."""

    __slots__ = ("_arrived", "_at", "_heap")

    def __init__(self) -> None:
        self._arrived = 0
        self._at: dict[int, int] = {}
        self._heap: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._at)

    def put(self, number: int, lacks: int) -> None:
        """This call is due once so many more have come."""
        self._at[number] = self._arrived + lacks
        heapq.heappush(self._heap, (self._arrived + lacks, number))
        if len(self._heap) > 2 * len(self._at) + _SLACK:
            self._heap = sorted((at, number) for number, at in self._at.items())

    def leave(self, number: int) -> None:
        """This call waits no more."""
        self._at.pop(number, None)

    def come(self, count: int) -> Iterator[int]:
        """So many have come: the calls that are due by that, each once until it is put again."""
        self._arrived += count
        while self._heap and self._heap[0][0] <= self._arrived:
            at, number = heapq.heappop(self._heap)
            if self._at.get(number) == at:
                del self._at[number]
                yield number
