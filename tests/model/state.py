"""The whole service on plain values: partitions, the counter of indexes, leases and clears, open and closed.

As in plain.py, what is left out of comparisons is no change when it differs.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.model.plain import LOST, OPEN, REMEMBERED, Partition


@dataclass
class Lease:
    """Rows that a task holds: what became of each, and its attempts when handed out. Times: the service's seconds."""

    number: int
    partition: str
    task: str
    worker: str | None
    token: str
    length: float
    size: int
    fates: dict[int, str]
    attempts: dict[int, int]
    began: float = field(default=0.0, compare=False)
    deadline: float = field(default=0.0, compare=False)

    @property
    def open(self) -> list[int]:
        return [index for index, fate in self.fates.items() if fate == OPEN]


@dataclass
class Clear:
    """Rows on their way out; `indexes` are all it had, also once it is committed or aborted."""

    number: int
    partition: str
    indexes: list[int]
    with_tombstones: bool
    state: str = "pending"


@dataclass
class State:
    partitions: dict[str, Partition] = field(default_factory=dict)
    deleted: dict[str, int] = field(default_factory=dict, compare=False)
    next_index: int = 0
    leases: dict[int, Lease] = field(default_factory=dict)
    closed: dict[int, Lease] = field(default_factory=dict)
    clears: dict[int, Clear] = field(default_factory=dict)
    settled: dict[int, Clear] = field(default_factory=dict)

    def lose(self, name: str, tasks: Iterable[str], indexes: Iterable[int] | None = None) -> None:
        """What these tasks hold of a partition is taken from them; of all its rows, or of some."""
        for task in tasks:
            held = [lease for lease in self.leases.values() if (lease.partition, lease.task) == (name, task)]
            for lease in held:
                gone = lease.open if indexes is None else set(lease.open) & set(indexes)
                lease.fates.update(dict.fromkeys(gone, LOST))
            self.close(held)

    def release_all(self) -> None:
        """Nothing is leased or set aside any more, and what was leased was handed out once less."""
        for lease in self.leases.values():
            for index in lease.open:
                self.partitions[lease.partition].tasks[lease.task].take_back(index)
        for lease in list(self.leases.values()):
            self.lose(lease.partition, [lease.task])
        for partition in self.partitions.values():
            for task in partition.tasks.values():
                task.release_all(partition.rows.keys() | partition.clearing.keys())

    def end(self, clear: Clear, state: str) -> None:
        """It is committed or aborted."""
        clear.state = state
        self.settled[clear.number] = self.clears.pop(clear.number)
        while len(self.settled) > REMEMBERED:
            del self.settled[next(iter(self.settled))]

    def close(self, touched: Iterable[Lease]) -> None:
        """Leases without an open row are closed, and only the last of them remembered."""
        for lease in touched:
            if not lease.open:
                self.closed[lease.number] = self.leases.pop(lease.number)
        while len(self.closed) > REMEMBERED:
            del self.closed[next(iter(self.closed))]
