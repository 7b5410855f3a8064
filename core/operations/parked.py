"""What an operation returns: its result, `Parked` when its caller must wait, or the steps that make one of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from core.slices import Sliced

R = TypeVar("R", covariant=True)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Parked(Generic[R]):
    """The operation waits for a change of `partition`. Times are the engine clock's seconds.

    `is_ripe` is an O(1) test whether `retry(False)` could answer now; at the deadline `retry(True)` must answer.
    """

    partition: str
    deadline: float
    is_ripe: Callable[[], bool]
    retry: Callable[[bool], "R | Parked[R] | Sliced[R | Parked[R]]"]

    def test(self, _: object) -> bool:
        """`is_ripe`, as an operation on the engine."""
        return self.is_ripe()


Outcome: TypeAlias = T | Parked[T] | Sliced[T | Parked[T]]
