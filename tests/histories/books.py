"""What an audit writes down: which samples a partition has, the state of each for every task, and the sums."""

from collections.abc import Iterable
from dataclasses import dataclass, field

WAITING, LEASED, CONSUMED, DEAD = "waiting", "leased", "consumed", "dead"
Account = tuple[int, int, int, int, int, int, int]


class Broken(AssertionError):
    """A law does not hold: which, and at what revision."""


@dataclass
class Held:
    """An open lease."""

    partition: str
    task: str
    rows: set[int]


@dataclass
class Task:
    """One task's account of a partition: the state of each sample that is there, and the sums, kept apart."""

    state: dict[int, str]
    sums: dict[str, int]
    holder: dict[int, int] = field(default_factory=dict)

    def move(self, index: int, before: str, after: str, step: int = 1) -> None:
        """`step` 0: the sample is clearing, and in no sum."""
        found = self.state.get(index, "gone")
        if found != before:
            raise Broken(f"sample {index} is {found}: it cannot go from {before} to {after}")
        self.state[index] = after
        self.sums[before] -= step
        self.sums[after] += step

    def count(self, indexes: Iterable[int], step: int) -> None:
        """These samples are in the sums (step 1), or not (-1)."""
        for index in indexes:
            self.sums[self.state[index]] += step

    def forget(self, indexes: Iterable[int]) -> None:
        for index in indexes:
            del self.state[index]
            self.holder.pop(index, None)


@dataclass
class Book:
    """One partition."""

    allocated: int = 0
    live: set[int] = field(default_factory=set)
    clearing: set[int] = field(default_factory=set)
    clears: dict[int, set[int]] = field(default_factory=dict)
    cleared: int = 0
    written: set[int] = field(default_factory=set)
    tasks: dict[str, Task] = field(default_factory=dict)

    def task(self, name: str) -> Task:
        if name not in self.tasks:
            rows = dict.fromkeys(self.live | self.clearing, WAITING)
            self.tasks[name] = Task(rows, {WAITING: len(self.live), LEASED: 0, CONSUMED: 0, DEAD: 0})
        return self.tasks[name]
