"""Production leases and revoked cells on the plain state, as contract#ttl and contract#revoke tell them."""

import copy
from collections.abc import Iterable, Sequence

from tests.model.clears import WithClears
from tests.model.plain import Partition, Row
from tests.model.said import Chosen, Refusal
from tests.model.state import State


class Model(WithClears):
    """The plain model, whole."""

    def revoke(self, name: str, chosen: Chosen, fields: Sequence[str]) -> int:
        """How many cells were ready."""
        if not self.get(name).fields.keys() >= set(fields):
            raise Refusal(["field-not-found"])
        after = copy.deepcopy(self.state)
        lost = 0
        for row in after.partitions[name].rows.values():
            if chosen.means(row):
                lost += self._lose(row, fields)
        self._settle(after, name)
        return lost

    def _lose(self, row: Row, fields: Iterable[str]) -> int:
        """How many of these cells were ready, and are not in the next revision."""
        cells = {field for field in fields if row.has(field)}
        row.revoked |= cells
        row.lost_at = self.revision + 1 if cells else row.lost_at
        return len(cells)

    def go_back(self, state: State, revision: int, unproduced: bool) -> list[int]:
        """The state is what it was at `revision`. Indexes of rows whose bytes may be gone."""
        before, self.state = self.state, copy.deepcopy(state)
        self.state.next_index = before.next_index
        self.state.release_all()
        self.revision += 1
        self.state.deleted = dict.fromkeys(self.state.deleted, self.revision)
        revived: list[Row] = []
        for name, partition in self.state.partitions.items():
            partition.revision = partition.made_at = self.revision
            partition.left.clear()
            was = before.partitions.get(name, Partition()).rows
            revived += [
                row for row in partition.rows.values() if row.index not in was or was[row.index].lost_at > revision
            ]
        indexes = sorted(row.index for row in revived)
        if unproduced:
            for name in self.state.partitions:
                self._unproduce(name, indexes)
        self.restart()
        return indexes

    def _unproduce(self, name: str, indexes: list[int]) -> None:
        after = copy.deepcopy(self.state)
        partition = after.partitions[name]
        for index in partition.rows.keys() & set(indexes):
            self._lose(partition.rows[index], partition.fields)
        self._settle(after, name)

    def expire(self) -> None:
        """Leases whose time is up end; then, of each partition, all rows that got no field in time."""
        super().expire()
        due = [
            (batch.deadline, batch.order, name, number)
            for name, partition in self.state.partitions.items()
            for number, batch in partition.timed.items()
            if batch.deadline <= self.now
        ]
        by_partition: dict[str, list[int]] = {}
        for _, _, name, number in sorted(due):
            by_partition.setdefault(name, []).append(number)
        for name, numbers in by_partition.items():
            self._expire_rows(name, numbers)

    def _expire_rows(self, name: str, numbers: list[int]) -> None:
        """They count as never inserted; those that are clearing have their time anew."""
        after = copy.deepcopy(self.state)
        partition = after.partitions[name]
        due = set().union(*(partition.timed[number].indexes for number in numbers))
        gone = [row for row in partition.rows.values() if row.index in due]
        if gone:
            partition.inserted -= len(gone)
            if partition.is_sealed:
                partition.expected = (partition.expected or 0) - len(gone)
            self._remove(after, name, gone)
        self._begin(self.state.partitions[name], numbers)

    def _begin(self, partition: Partition, numbers: Sequence[int]) -> None:
        for number in numbers:
            if number in partition.timed:
                batch = partition.timed[number]
                self._order += 1
                batch.deadline, batch.order = self.now + batch.length, self._order

    def restart(self) -> None:
        super().restart()
        for partition in self.state.partitions.values():
            self._begin(partition, list(partition.timed))


def listed_after(partition: Partition, revision: int) -> tuple[list[Row], set[str]]:
    """What who follows the keys is told: rows in the order of their changes, and keys that left."""
    rows = [row for row in partition.rows.values() if row.key is not None and row.revision > revision]
    left = {key for key, at in partition.left.items() if at > revision and partition.by_key(key) is None}
    return sorted(rows, key=lambda row: (row.revision, row.index)), left
