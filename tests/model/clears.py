"""Clears in two steps on the plain state, as contract#clears tells them."""

import copy

from tests.model.leases import WithLeases
from tests.model.plain import Partition
from tests.model.said import Chosen, Refusal
from tests.model.state import Clear


class WithClears(WithLeases):
    """The plain model with leases and clears."""

    def plan_clear(self, name: str, chosen: Chosen, with_tombstones: bool) -> tuple[Clear, list[int]]:
        """(the clear, indexes that another one has already); a change in any case."""
        partition = self.get(name)
        rows = sorted(row.index for row in partition.rows.values() if chosen.means(row))
        skipped = sorted(row.index for row in partition.clearing.values() if chosen.means(row))
        after = copy.deepcopy(self.state)
        clear = Clear(self.revision + 1, name, rows, with_tombstones)
        after.clears[clear.number] = clear
        after.partitions[name].hide(rows)
        self._settle(after, name)
        going = after.partitions[name]
        going.left.update({row.key: self.revision for index in rows if (row := going.clearing[index]).key is not None})
        return clear, skipped

    def find_clear(self, number: int) -> Clear:
        clear = self.state.clears.get(number) or self.state.settled.get(number)
        if clear is None:
            raise Refusal(["clear-not-found"])
        return clear

    def commit_clear(self, number: int) -> int:
        """How many rows are gone."""
        clear = self.find_clear(number)
        if self._is_closed(clear, "committed"):
            return len(clear.indexes)
        after = copy.deepcopy(self.state)
        partition = after.partitions[clear.partition]
        gone = [partition.clearing[index] for index in clear.indexes]
        if clear.with_tombstones:
            partition.tombstones |= {row.key for row in gone if row.key is not None}
        after.end(after.clears[number], "committed")
        self._remove(after, clear.partition, gone)
        return len(gone)

    def abort_clear(self, number: int) -> None:
        clear = self.find_clear(number)
        if self._is_closed(clear, "aborted"):
            return
        after = copy.deepcopy(self.state)
        after.partitions[clear.partition].show(clear.indexes)
        after.end(after.clears[number], "aborted")
        self._settle(after, clear.partition)

    @staticmethod
    def _is_closed(clear: Clear, state: str) -> bool:
        if clear.state not in ("pending", state):
            raise Refusal(["clear-closed"])
        return clear.state == state


def fields_of(partition: Partition, clear: Clear) -> dict[str, dict[str, list[object]]]:
    """What a plan tells: per field that one of its rows was written with, or has backend meta of."""
    rows = [partition.clearing[index] for index in clear.indexes]
    return {
        name: {
            "written": [int(name in row.shapes) for row in rows],
            "backend_meta": [row.cells.get(name) for row in rows],
        }
        for name in partition.fields
        if any(name in row.shapes or row.cells.get(name) is not None for row in rows)
    }
