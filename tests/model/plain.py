"""The state of the service as the contract tells it, in dicts and loops. It knows nothing of `core`.

Revisions are left out of comparisons, so that two equal states are two states between which nothing changed.
"""

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.model.tasks import Task

Shape = tuple[int, ...]
OPEN, ACCEPTED, RELEASED, REJECTED, LOST = "open", "accepted", "released", "rejected", "lost"
REMEMBERED = 3


@dataclass
class Row:
    index: int
    position: int
    key: str | None
    group: str | int | None = None
    custom: dict[str, Any] = field(default_factory=dict)
    shapes: dict[str, Shape | None] = field(default_factory=dict)
    cells: dict[str, Any] = field(default_factory=dict)
    revoked: set[str] = field(default_factory=set)
    revision: int = field(default=0, compare=False)
    lost_at: int = field(default=0, compare=False)

    def has(self, name: str) -> bool:
        """The field is produced, and was not revoked since."""
        return name in self.shapes and name not in self.revoked


@dataclass
class Schema:
    """A field as it stands, as it is declared, or as a write would have it (then `shapes` has one per row)."""

    kind: str
    dtype: str | None = None
    ragged: bool = False
    rank: int | None = None
    shape: Shape | None = None
    shapes: list[Shape] = field(default_factory=list)

    def conflicts(self, other: "Schema") -> set[str]:
        if self.kind != other.kind:
            return {"kind-conflict"}
        ranks = {self.rank, other.rank} - {None}
        return {"dtype-conflict"} if self.dtype != other.dtype or len(ranks) > 1 else set()


@dataclass
class Timed:
    """Rows that disappear at `deadline` unless a field of theirs is produced; `order` tells equal deadlines apart."""

    length: float
    indexes: set[int]
    deadline: float = field(default=0.0, compare=False)
    order: int = field(default=0, compare=False)


@dataclass
class Settings:
    expected: int | None = None
    most: int | None = None
    attempts: int = 5
    declared: dict[str, Schema] = field(default_factory=dict)


@dataclass
class Partition:
    settings: Settings = field(default_factory=Settings)
    rows: dict[int, Row] = field(default_factory=dict)
    clearing: dict[int, Row] = field(default_factory=dict)
    tombstones: set[str] = field(default_factory=set)
    fields: dict[str, Schema] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)
    timed: dict[int, "Timed"] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict, compare=False)
    inserted: int = 0
    positions: int = 0
    expected: int | None = None
    most: int | None = None
    attempts: int = 5
    is_sealed: bool = False
    revision: int = field(default=0, compare=False)
    made_at: int = field(default=0, compare=False)

    @property
    def held(self) -> list[Row]:
        """Rows that are there or clearing."""
        return [*self.rows.values(), *self.clearing.values()]

    def holders(self, name: str) -> list[Row]:
        return [row for row in self.held if name in row.shapes]

    def by_key(self, key: str) -> Row | None:
        return next((row for row in self.rows.values() if row.key == key), None)

    def taken(self, task: str) -> set[int]:
        """Rows that are there and not to be had."""
        return self.tasks.get(task, Task()).taken & self.rows.keys()

    def leave_batches(self, indexes: Iterable[int]) -> None:
        """These rows do not disappear by themselves any more."""
        left = set(indexes)
        for number, batch in list(self.timed.items()):
            batch.indexes -= left
            if not batch.indexes:
                del self.timed[number]

    def hide(self, indexes: Iterable[int]) -> None:
        """These rows are clearing."""
        self.clearing.update({index: self.rows.pop(index) for index in indexes})

    def show(self, indexes: Iterable[int]) -> None:
        """They are back, in their old places."""
        self.rows.update({index: self.clearing.pop(index) for index in indexes})
        self.rows = dict(sorted(self.rows.items()))

    def is_done(self, task: str) -> bool:
        if not self.is_sealed and (self.expected is None or self.inserted < self.expected):
            return False
        kept = self.tasks.get(task, Task())
        return {*kept.consumed, *kept.dead} >= set(self.rows)

    def stranded(self, task: str, fields: Sequence[str]) -> list[int]:
        """Rows left of a sealed partition, if all are ready and none may come back to the task: as good as none."""
        kept = self.tasks.get(task, Task())
        left = [index for index in self.rows if index not in kept.consumed and index not in kept.dead]
        comes_back = kept.taken & self.rows.keys() - kept.consumed - kept.dead.keys()
        comes_back |= self.clearing.keys() - kept.consumed - kept.dead.keys()
        is_ready = all(self.rows[index].has(name) for index in left for name in fields)
        is_over = self.is_sealed and set(fields) <= self.fields.keys() and is_ready and not comes_back
        return left if is_over else []

    def note_shapes(self, name: str) -> None:
        """Ragged once two samples differ in shape, or one from the declared shape."""
        schema, declared = self.fields[name], self.settings.declared.get(name)
        shapes = {row.shapes[name] for row in self.holders(name)}
        if declared is not None and declared.shape is not None and shapes:
            shapes.add(declared.shape)
        schema.ragged |= schema.kind == "tensor" and len(shapes) > 1

    def clear(self, rows: Iterable[Row]) -> list[Row]:
        """Rows are gone; what was consumed still counts; a field that nobody has any more is forgotten.

        Gives the rows that had backend meta of such a field, without having it: they have it no more.
        """
        rows = list(rows)
        self.leave_batches(row.index for row in rows)
        held = [name for name in self.fields if self.holders(name)]
        for row in rows:
            self.rows.pop(row.index, None)
            self.clearing.pop(row.index, None)
            for task in self.tasks.values():
                task.forget(row.index)
        return [row for name in held if not self.holders(name) for row in self._forget(name)]

    def _forget(self, name: str) -> list[Row]:
        if name in self.settings.declared:
            self.fields[name] = copy.deepcopy(self.settings.declared[name])
            return []
        del self.fields[name]
        for row in self.held:
            row.revoked.discard(name)
        return [row for row in self.held if row.cells.pop(name, None) is not None]

    def takeable(self, task: str, fields: Sequence[str]) -> list[int]:
        """Every requested field produced, not taken by the task; lowest first."""
        taken = self.taken(task)
        return [i for i, row in self.rows.items() if i not in taken and all(row.has(name) for name in fields)]

    def whole_groups(self, indexes: Iterable[int], n: int, by: str) -> list[list[int]]:
        """Groups of exactly n rows, all of them takeable: these are."""
        takeable = set(indexes)
        groups: dict[Any, list[Row]] = {}
        for row in self.rows.values():
            name = row.position // n if by == "position" else row.group
            groups.setdefault(name, []).append(row)
        groups.pop(None, None)
        out = []
        for rows in groups.values():
            names = {row.group for row in rows} - {None}
            if len(rows) == n and len(names) <= 1 and takeable.issuperset(row.index for row in rows):
                out.append([row.index for row in rows])
        return out


def patched(custom: dict[str, Any], patch: dict[str, Any] | None, mode: str) -> dict[str, Any]:
    """Custom meta after a patch, in one of the two modes; None leaves it alone."""
    if patch is None:
        return custom
    if mode == "merge":
        return dict(merged(custom, patch))
    after = dict(custom)
    after.update(patch)
    return after


def merged(target: Any, patch: Any) -> Any:
    """RFC 7396, section 2, as it is written there."""
    if not isinstance(patch, dict):
        return patch
    target = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = merged(target.get(name), value)
    return target
