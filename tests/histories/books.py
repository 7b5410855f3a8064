"""The records of an audit: the samples of a partition, the state of each for every task, and the sums."""

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
    """One task's account of a partition: the state of each sample that is there, and the sums, kept apart.

    Samples that are set aside are leased, by nobody: `share_of` has the number of the share, `shares` their number so
    far, `keys` those they were set aside for.
    """

    state: dict[int, str]
    sums: dict[str, int]
    holder: dict[int, int] = field(default_factory=dict)
    share_of: dict[int, int] = field(default_factory=dict)
    shares: int = 0
    keys: set[str] = field(default_factory=set)

    def set_aside(self, key: str, shares: Iterable[list[int]]) -> None:
        """Once for each key."""
        if key in self.keys:
            raise Broken(f"samples are set aside for {key!r} again")
        self.keys.add(key)
        for indexes in shares:
            self.shares += 1
            for index in indexes:
                self.move(index, WAITING, LEASED)
                self.share_of[index] = self.shares

    def is_held(self, index: int) -> bool:
        """Set aside, and nobody has it."""
        return index in self.share_of and self.state.get(index) == LEASED and index not in self.holder

    def fetch(self, share: int, indexes: list[int]) -> None:
        """What is held of a share goes out, all of it at once, and to nobody else."""
        held = {index for index, number in self.share_of.items() if number == share and self.is_held(index)}
        if not 0 < share <= self.shares or held != set(indexes):
            raise Broken(f"share {share} holds {sorted(held)}, but {indexes} of it go out")
        for index in indexes:
            self.move(index, LEASED, WAITING)

    def after(self, state: str, index: int) -> str:
        """A sample that is free again is held for its share."""
        return LEASED if state == WAITING and index in self.share_of else state

    def break_up(self, gone: set[int], clearing: set[int]) -> None:
        """Samples go for good: the shares of those that were leased end, and what is held with them is free."""
        broken = {self.share_of[index] for index in gone & self.share_of.keys() if self.state[index] == LEASED}
        for index in [index for index, share in self.share_of.items() if share in broken]:
            if self.is_held(index) and index not in gone:
                self.move(index, LEASED, WAITING, int(index not in clearing))
            del self.share_of[index]

    def release_all(self, clearing: set[int]) -> None:
        """What is leased is free; keys are known no more."""
        for index in [index for index, state in self.state.items() if state == LEASED]:
            self.move(index, LEASED, WAITING, int(index not in clearing))
        self.holder.clear()
        self.share_of.clear()
        self.keys.clear()

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
            self.share_of.pop(index, None)


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
