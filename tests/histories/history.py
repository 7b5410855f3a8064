"""A concurrent history: calls with when they were made, when they were answered, and what. Values only.

An operation without an answer may have taken place at any time after its call, or never.
"""

from dataclasses import dataclass
from math import inf
from typing import Any


class Unknown:
    """No answer came."""

    def __repr__(self) -> str:
        return "?"


UNKNOWN = Unknown()


@dataclass(frozen=True, slots=True)
class Operation:
    """`name` and `arguments` as the specification knows them; times in seconds of one clock; the reply's `revision`."""

    number: int
    name: str
    arguments: tuple[Any, ...]
    called: float
    returned: float = inf
    answer: Any = UNKNOWN
    revision: int | None = None

    def __str__(self) -> str:
        when = f"{self.called:.4f}-{self.returned:.4f}"
        said = ", ".join(map(repr, self.arguments))
        return f"#{self.number} {when} {self.name}({said}) → {self.answer!r} @{self.revision}"


def out_of_order(history: list[Operation]) -> list[tuple[Operation, Operation]]:
    """Pairs of which the second began after the first had ended, and was answered at an earlier revision."""
    told = [operation for operation in history if operation.revision is not None]
    return [
        (before, after)
        for before in told
        for after in told
        if before.returned < after.called and (before.revision or 0) > (after.revision or 0)
    ]
