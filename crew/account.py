"""The account of one run: the samples put, consumed and deleted, and every way in which the numbers do not match.

Each process keeps a Tally for each of its tasks and sends it to the driver when it is done; the Account adds them up.
"""

import time
from collections import Counter
from collections.abc import Awaitable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")

SHOWN = 5


@dataclass(slots=True)
class Tally:
    """The work of one task of one process. It lists indexes and does not only count them, to name a wrong one."""

    task: str
    put: dict[str, list[int]] = field(default_factory=dict)
    consumed: dict[str, list[int]] = field(default_factory=dict)
    deleted: dict[str, list[int]] = field(default_factory=dict)
    stored: list[str] = field(default_factory=list)
    removed: int = 0
    checked: int = 0
    bytes_moved: int = 0
    calls: int = 0
    call_s: float = 0.0
    began: float = field(default_factory=time.monotonic)
    ended: float = 0.0

    async def call(self, pending: Awaitable[T]) -> T:
        """Await one call of the service and count it."""
        start = time.monotonic()
        try:
            return await pending
        finally:
            self.ended = time.monotonic()
            self.calls += 1
            self.call_s += self.ended - start


def note(books: dict[str, list[int]], partition: str, indexes: Iterable[int]) -> None:
    """Enter `indexes` under their partition."""
    books.setdefault(partition, []).extend(indexes)


@dataclass(slots=True)
class Account:
    """All tallies of a run against what it should have done."""

    expected: dict[str, int]
    tasks: dict[str, tuple[str, ...]]
    tallies: list[Tally]

    def faults(self) -> list[str]:
        """One line for each thing that is wrong; empty when put = consumed = deleted everywhere, once each."""
        return [line for partition in self.expected for line in self._partition_faults(partition)] + [
            *self._value_faults()
        ]

    def put(self, partition: str) -> list[int]:
        return [index for tally in self.tallies for index in tally.put.get(partition, [])]

    def consumed(self, partition: str, task: str) -> list[int]:
        of_task = [tally for tally in self.tallies if tally.task == task]
        return [index for tally in of_task for index in tally.consumed.get(partition, [])]

    def deleted(self, partition: str) -> list[int]:
        return [index for tally in self.tallies for index in tally.deleted.get(partition, [])]

    def _partition_faults(self, partition: str) -> Iterator[str]:
        put = self.put(partition)
        if len(put) != self.expected[partition]:
            yield f"{partition}: {len(put)} samples put, {self.expected[partition]} expected"
        yield from _twice(f"{partition}: put", put)
        for task in self.tasks[partition]:
            yield from _differences(f"{partition}: {task} consumed", put, self.consumed(partition, task))
        yield from _differences(f"{partition}: deleted", put, self.deleted(partition))

    def _value_faults(self) -> Iterator[str]:
        stored = [name for tally in self.tallies for name in tally.stored]
        removed = sum(tally.removed for tally in self.tallies)
        if len(set(stored)) != len(stored):
            yield f"storage: {len(stored) - len(set(stored))} names written twice"
        if removed != len(stored):
            yield f"storage: {len(stored)} values put, {removed} deleted"


def _twice(what: str, indexes: list[int]) -> Iterator[str]:
    repeated = [index for index, times in Counter(indexes).items() if times > 1]
    if repeated:
        yield f"{what} more than once: {_some(repeated)}"


def _differences(what: str, put: list[int], others: list[int]) -> Iterator[str]:
    yield from _twice(what, others)
    missing, unknown = set(put) - set(others), set(others) - set(put)
    if missing:
        yield f"{what}, missing: {_some(missing)}"
    if unknown:
        yield f"{what}, never put: {_some(unknown)}"


def _some(indexes: Iterable[int]) -> str:
    ordered = sorted(indexes)
    more = f" and {len(ordered) - SHOWN} more" if len(ordered) > SHOWN else ""
    return ", ".join(map(str, ordered[:SHOWN])) + more
