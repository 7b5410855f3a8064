"""Samplers and `where` on plain rows, as contract#samplers tells them. They know nothing of `core`.

A picker says which groups of rows could go out (of one row each, mostly), and which of them do.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tests.model.plain import Partition, Row

Condition = dict[str, Any]
MISSING = object()


def at(custom: Any, path: str) -> Any:
    """The value at a dotted path."""
    for member in path.split("."):
        if not isinstance(custom, dict) or member not in custom:
            return MISSING
        custom = custom[member]
    return custom


def kind(value: Any) -> str | None:
    if isinstance(value, bool):
        return "bool"
    return "number" if isinstance(value, int | float) else "string" if isinstance(value, str) else None


def holds(custom: Any, condition: Condition) -> bool:
    """No such path, or another type: no, for != too."""
    found, op, value = at(custom, condition["path"]), condition["op"], condition.get("value")
    if op == "exists":
        return (found is not MISSING) == (True if value is None else value)
    if op == "in":
        return any(kind(found) == kind(one) and found == one for one in value)
    if kind(found) is None or kind(found) != kind(value):
        return False
    if op == "prefix":
        return str(found).startswith(value)
    answers = {"==": found == value, "!=": found != value}
    return answers[op] if op in answers else compares(op, found, value)


def compares(op: str, found: Any, value: Any) -> bool:
    return bool({"<": found < value, "<=": found <= value, ">": found > value, ">=": found >= value}[op])


def passes(row: Row, where: Sequence[Condition] | None) -> bool:
    return all(holds(row.custom, condition) for condition in where or ())


def weight(row: Row, path: str, default: float | None = None) -> int | float | None:
    """The number there, if there is one."""
    found = at(row.custom, path)
    return found if kind(found) == "number" and math.isfinite(found) else default


@dataclass
class Picker:
    """`sequential`: lowest indexes first."""

    name: ClassVar[str] = "sequential"
    ranks: ClassVar[int] = 1
    n: int = 1

    @property
    def arguments(self) -> dict[str, Any]:
        return {}

    def offered(self, partition: Partition, takeable: list[int]) -> list[list[int]]:
        """Groups that could go out, in the order they would."""
        return [[index] for index in takeable]

    def taken(self, partition: Partition, takeable: list[int], most: int) -> list[list[int]]:
        """Groups that do."""
        return self.offered(partition, takeable)[: most // self.n]

    def enough(self, partition: Partition, takeable: list[int], most: int) -> int:
        """Rows for which a claim need not wait any longer."""
        return most

    def weightless(self, partition: Partition, takeable: list[int]) -> list[int]:
        """Rows that are held back for want of a number."""
        return []

    def check(self, partition: Partition, takeable: list[int], groups: list[list[int]], most: int) -> None:
        """These went out."""
        assert groups == self.taken(partition, takeable, most)


@dataclass
class Groups(Picker):
    """`grpo_group`; by group id any whole groups may go out."""

    name = "grpo_group"
    by: str = "group_id"

    @property
    def arguments(self) -> dict[str, Any]:
        return {"n_samples_per_prompt": self.n, "group_by": self.by}

    def offered(self, partition: Partition, takeable: list[int]) -> list[list[int]]:
        return partition.whole_groups(takeable, self.n, self.by)

    def check(self, partition: Partition, takeable: list[int], groups: list[list[int]], most: int) -> None:
        offered = self.offered(partition, takeable)
        assert len(groups) == min(most // self.n, len(offered))
        if self.by == "position":
            assert groups == offered[: len(groups)]
        assert all(group in offered for group in groups)
        assert len({index for group in groups for index in group}) == len(groups) * self.n


@dataclass
class Lifo(Picker):
    """Newest first."""

    name = "lifo"

    def offered(self, partition: Partition, takeable: list[int]) -> list[list[int]]:
        return [[index] for index in reversed(takeable)]


@dataclass
class Priority(Picker):
    """Highest weight first, equal ones by index."""

    name = "priority"
    path: str = "w"
    default: float | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        return {"weight": self.path, "weight_default": self.default}

    def weights(self, partition: Partition, takeable: list[int]) -> dict[int, float]:
        found = {index: weight(partition.rows[index], self.path, self.default) for index in takeable}
        return {index: number for index, number in found.items() if number is not None}

    def offered(self, partition: Partition, takeable: list[int]) -> list[list[int]]:
        weights = self.weights(partition, takeable)
        return [[index] for index in sorted(weights, key=lambda index: (-weights[index], index))]

    def weightless(self, partition: Partition, takeable: list[int]) -> list[int]:
        return sorted(set(takeable) - self.weights(partition, takeable).keys())


@dataclass
class TokenBudget(Priority):
    """Lowest first while they fit; a first row over the budget goes out alone."""

    name = "token_budget"
    budget: float = 4.0

    @property
    def arguments(self) -> dict[str, Any]:
        return {**super().arguments, "budget": self.budget}

    def offered(self, partition: Partition, takeable: list[int]) -> list[list[int]]:
        return [[index] for index in sorted(self.weights(partition, takeable))]

    def taken(self, partition: Partition, takeable: list[int], most: int) -> list[list[int]]:
        return self._fitting(partition, takeable, most)[0]

    def enough(self, partition: Partition, takeable: list[int], most: int) -> int:
        fitting, is_full = self._fitting(partition, takeable, most)
        return len(fitting) if is_full else most

    def _fitting(self, partition: Partition, takeable: list[int], most: int) -> tuple[list[list[int]], bool]:
        """(groups, whether the budget is reached by them or would be passed by the next)."""
        weights, total = self.weights(partition, takeable), 0.0
        out: list[list[int]] = []
        for index in sorted(weights)[:most]:
            if total + weights[index] > self.budget:
                return out or [[index]], True
            total += weights[index]
            out.append([index])
        return out, bool(out) and total == self.budget


@dataclass
class Random(Picker):
    """A fixed shuffle: whichever it is, what it once put first it always puts first."""

    name = "random"
    seed: int = 0
    order: dict[int, set[tuple[int, int]]] = field(default_factory=dict, repr=False)

    @property
    def arguments(self) -> dict[str, Any]:
        return {"seed": self.seed}

    def check(self, partition: Partition, takeable: list[int], groups: list[list[int]], most: int) -> None:
        out = [index for group in groups for index in group]
        assert len(set(out)) == len(out) == min(most, len(takeable))
        assert set(out) <= set(takeable)
        known = self.order.setdefault(self.seed, set())
        for place, index in enumerate(out):
            later = {*out[place + 1 :], *(set(takeable) - set(out))}
            known |= {(index, other) for other in later}
        assert not any((other, index) in known for index, other in known)
