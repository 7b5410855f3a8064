"""The service's operations as the contract tells them, on the plain state. They know nothing of `core`.

An operation works on a copy; only if the copy differs from what was there is it a change, with a new revision. A call
that the contract refuses raises `Refusal` with every code that would be right, and changes nothing. Leases, clears and
production leases are in files of their own; this one has what they share.
"""

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from tests.model.memory import Fetch
from tests.model.plain import LOST, Partition, Row, Schema, Settings, Timed, patched
from tests.model.said import Chosen, Refusal, Write
from tests.model.state import State
from tests.model.tasks import Task

MAX_DELETED = 2


class Plain:
    """The model: one method per operation."""

    def __init__(self) -> None:
        self.state = State()
        self.revision = 0
        self.now = 0.0
        self._order = 0

    def find(self, name: str) -> Partition | None:
        return self.state.partitions.get(name)

    def get(self, name: str) -> Partition:
        partition = self.find(name)
        if partition is None:
            raise Refusal(["partition-cleared" if name in self.state.deleted else "partition-not-found"])
        return partition

    def revision_of(self, name: str) -> int:
        partition = self.find(name)
        return partition.revision if partition else self.state.deleted.get(name, 0)

    def _settle(self, after: State, name: str, touched: Iterable[int] = (), others: Iterable[str] = ()) -> None:
        """`after` is the state now, in a new revision if it differs; `others` changed with `name`."""
        before, self.state = self.state, after
        if after == before:
            self.state = before
            return
        self.revision += 1
        for changed in {name, *others}:
            self._mark(before.partitions.get(changed), after, changed, touched)

    def _mark(self, old: Partition | None, after: State, name: str, touched: Iterable[int]) -> None:
        new = after.partitions.get(name)
        if new is None:
            after.deleted[name] = self.revision
            while len(after.deleted) > MAX_DELETED:
                del after.deleted[next(iter(after.deleted))]
            return
        after.deleted.pop(name, None)
        new.revision = self.revision
        new.made_at = self.revision if old is None else old.made_at
        for index, row in new.rows.items():
            if index in touched or old is None or old.rows.get(index) != row:
                row.revision = self.revision

    def put(self, name: str, settings: Settings) -> None:
        after = copy.deepcopy(self.state)
        partition = after.partitions.setdefault(name, Partition())
        if settings != partition.settings:
            if partition.settings != Settings():
                raise Refusal(["partition-conflict"])
            clash = [
                schema.conflicts(partition.fields[known])
                for known, schema in settings.declared.items()
                if known in partition.fields
            ]
            if any(clash):
                raise Refusal(set().union(*clash))
            partition.settings = copy.deepcopy(settings)
            partition.most, partition.attempts = settings.most, settings.attempts
            partition.expected = partition.expected if partition.is_sealed else settings.expected
            for known, schema in settings.declared.items():
                partition.fields.setdefault(known, copy.deepcopy(schema))
                partition.note_shapes(known)
                partition.fields[known].ragged |= schema.ragged
        self._settle(after, name)

    def patch_partition(self, name: str, expected: int | None, most: int | None, attempts: int | None) -> None:
        self.get(name)
        after = copy.deepcopy(self.state)
        partition = after.partitions[name]
        if partition.is_sealed and expected not in (None, partition.expected):
            raise Refusal(["partition-sealed"])
        partition.expected = partition.expected if expected is None else expected
        partition.most = partition.most if most is None else most
        partition.attempts = attempts or partition.attempts
        self._settle(after, name)

    def seal(self, name: str) -> None:
        self.get(name)
        after = copy.deepcopy(self.state)
        partition = after.partitions[name]
        if not partition.is_sealed:
            partition.is_sealed, partition.expected = True, len(partition.held)
        self._settle(after, name)

    def delete_partition(self, name: str) -> int:
        partition = self.find(name)
        if partition is None:
            return 0
        after = copy.deepcopy(self.state)
        del after.partitions[name]
        held = [lease for lease in after.leases.values() if lease.partition == name]
        for lease in held:
            lease.fates.update(dict.fromkeys(lease.open, LOST))
        after.close(held)
        for clear in [clear for clear in after.clears.values() if clear.partition == name]:
            after.end(clear, "committed")
        self._settle(after, name)
        return len(partition.held)

    def insert(self, name: str, count: int | None, write: Write) -> tuple[list[int], int]:
        after = copy.deepcopy(self.state)
        partition = after.partitions.setdefault(name, Partition())
        rows, created = self._rows(after, partition, write, count, create=True)
        self._describe(partition, rows, write)
        self._time(partition, rows, write)
        self._settle(after, name)
        return [row.index for row in rows], created

    def _time(self, partition: Partition, rows: list[Row], write: Write) -> None:
        """Rows that never had a field have so long to get one, from now."""
        indexes = {row.index for row in rows if not row.shapes}
        if write.ttl is not None and indexes:
            partition.leave_batches(indexes)
            self._order += 1
            partition.timed[self.revision + 1] = Timed(write.ttl, indexes, self.now + write.ttl, self._order)

    def produce(self, name: str, write: Write, create: bool, skip: bool = False) -> tuple[list[int], int]:
        if not (create and write.keys is not None) or name in self.state.deleted:
            self.get(name)
        after = copy.deepcopy(self.state)
        partition = after.partitions.setdefault(name, Partition())
        if skip:
            write.check_once(create)
            write = write.without(self.skipped(name, write))
        rows, created = self._rows(after, partition, write, None, create)
        codes = set().union(
            *(schema.conflicts(partition.fields[f]) for f, schema in write.fields.items() if f in partition.fields)
        )
        self._describe(partition, rows, write, codes)
        self._time(partition, rows, write)
        touched = [row.index for row in rows] if self._make_ready(partition, rows, write) else []
        self._settle(after, name, touched)
        return [row.index for row in rows], created

    def skipped(self, name: str, write: Write) -> list[int | str]:
        """What a write names that was cleared: indexes given out and not held, keys with a tombstone."""
        partition = self.find(name) or Partition()
        held = {row.index for row in partition.held}
        cleared = [i for i in write.indexes or () if i not in held and i < self.state.next_index]
        return [*cleared, *(key for key in write.keys or () if key in partition.tombstones)]

    def _rows(
        self, state: State, partition: Partition, write: Write, count: int | None, create: bool
    ) -> tuple[list[Row], int]:
        if write.indexes is not None:
            return self._by_index(state, partition, write.indexes, create), 0
        keys: Sequence[str | None] = write.keys if write.keys is not None else [None] * (count or 0)
        gone = {
            "sample-clearing": {row.key for row in partition.clearing.values()},
            "sample-cleared": partition.tombstones,
        }
        found = [partition.by_key(key) if key is not None else None for key in keys]
        new = found.count(None)
        most = partition.most
        codes = {"duplicate-keys"} if write.keys and len(set(keys)) < len(keys) else set()
        codes |= {"key-not-found"} if new and not create else set()
        codes |= {"partition-sealed"} if new and partition.is_sealed else set()
        codes |= {"too-many-samples"} if new and most is not None and len(partition.held) + new > most else set()
        codes |= {code for code, names in gone.items() if {*keys} - {None} & names}
        if codes:
            raise Refusal(codes)
        rows = [old or self._add(state, partition, key) for old, key in zip(found, keys, strict=True)]
        return rows, new

    @staticmethod
    def _by_index(state: State, partition: Partition, indexes: list[int], create: bool) -> list[Row]:
        codes = {"invalid-request"} if create else set()
        codes |= {"duplicate-indexes"} if len(set(indexes)) < len(indexes) else set()
        absent = [index for index in indexes if index not in partition.rows]
        codes |= {"sample-clearing"} if partition.clearing.keys() & absent else set()
        absent = [index for index in absent if index not in partition.clearing]
        codes |= {"sample-not-found" if max(absent) >= state.next_index else "sample-cleared"} if absent else set()
        if codes:
            raise Refusal(codes)
        return [partition.rows[index] for index in indexes]

    @staticmethod
    def _add(state: State, partition: Partition, key: str | None) -> Row:
        row = Row(state.next_index, partition.positions, key)
        partition.rows[row.index] = row
        state.next_index += 1
        partition.inserted += 1
        partition.positions += 1
        return row

    @staticmethod
    def _describe(partition: Partition, rows: list[Row], write: Write, codes: Iterable[str] = ()) -> None:
        """Groups, once; custom meta, patched."""
        refused = set(codes)
        for row, group in zip(rows, write.groups or [None] * len(rows), strict=True):
            if None not in (row.group, group) and row.group != group:
                refused.add("group-conflict")
            row.group = row.group if group is None else group
        if refused:
            raise Refusal(refused)
        for row, patch in zip(rows, write.custom or [None] * len(rows), strict=True):
            row.custom = patched(row.custom, patch, write.mode)

    @staticmethod
    def _make_ready(partition: Partition, rows: list[Row], write: Write) -> bool:
        """The cells are produced. True where the write says ragged of a field that was not."""
        turned = False
        for name, schema in write.fields.items() if rows else ():
            known = partition.fields.setdefault(name, Schema(schema.kind, schema.dtype, schema.ragged, schema.rank))
            turned |= schema.ragged and not known.ragged
            known.ragged |= schema.ragged
            known.rank = schema.rank
            cells = write.backend.get(name, [None] * len(rows))
            for row, shape, cell in zip(rows, schema.shapes or [None] * len(rows), cells, strict=True):
                row.shapes[name] = shape
                row.cells[name] = cell
                row.revoked.discard(name)
            partition.note_shapes(name)
        if write.fields:
            partition.leave_batches(row.index for row in rows)
        return turned

    def patch_custom(self, name: str, write: Write, if_revision: int | None = None) -> None:
        self.get(name)
        after = copy.deepcopy(self.state)
        rows, _ = self._rows(after, after.partitions[name], write, None, create=False)
        if if_revision is not None and any(row.revision > if_revision for row in rows):
            raise Refusal(["precondition-failed"])
        self.produce(name, write, create=False)

    def patch_backend(self, name: str, write: Write, columns: dict[str, list[Any]]) -> None:
        self.get(name)
        after = copy.deepcopy(self.state)
        partition = after.partitions[name]
        rows, _ = self._rows(after, partition, write, None, create=False)
        if not partition.fields.keys() >= columns.keys():
            raise Refusal(["field-not-found"])
        for row, *cells in zip(rows, *columns.values(), strict=True):
            for known, cell in zip(columns, cells, strict=True):
                if cell is not None or known in row.cells:
                    row.cells[known] = cell
        self._settle(after, name)

    def delete(self, name: str, chosen: Chosen) -> tuple[int, list[int]]:
        """(rows removed, indexes left to a clear)."""
        if self.find(name) is None and name not in self.state.deleted:
            return 0, []
        self.get(name)
        after = copy.deepcopy(self.state)
        partition = after.partitions[name]
        gone = [row for row in partition.rows.values() if chosen.means(row)]
        self._remove(after, name, gone)
        return len(gone), sorted(row.index for row in partition.clearing.values() if chosen.means(row))

    def _remove(self, after: State, name: str, gone: list[Row]) -> None:
        """Rows are gone for good. A field that is forgotten with them is no change of others, their cells of it are."""
        partition = after.partitions[name]
        listed = set(partition.rows)  # the others left the listing with the plan of their clear
        changed = partition.clear(gone)
        after.lose(name, partition.tasks, [row.index for row in gone])
        revisions = {row.index: row.revision for row in partition.rows.values()}
        self._settle(after, name)
        partition.left.update({row.key: self.revision for row in gone if row.key is not None and row.index in listed})
        for row in partition.rows.values():
            row.revision = revisions[row.index]
        for row in changed:
            row.revision = self.revision

    def consume(self, name: str, task: str, indexes: Iterable[int], fetch: Fetch | None = None) -> None:
        after = copy.deepcopy(self.state)
        kept = after.partitions[name].tasks.setdefault(task, Task())
        kept.consumed.update(indexes)
        if fetch is not None:
            fetch.note(kept, self.revision + 1, None)
        self._settle(after, name)

    def reset(self, name: str, task: str | None) -> int:
        partition = self.get(name)
        tasks = {t: kept for t, kept in partition.tasks.items() if task in (None, t)}
        after = copy.deepcopy(self.state)
        for known in tasks:
            after.partitions[name].tasks[known] = Task()
        after.lose(name, tasks)
        self._settle(after, name)
        counts = [len(partition.taken(known)) + kept.consumed_gone(partition) for known, kept in tasks.items()]
        return sum(counts)
