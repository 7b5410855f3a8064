"""What an operation returns: its result, `Parked` when its caller must wait, or the steps that make one of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from core.slices import Sliced
from core.state.supply.news import Lack

R = TypeVar("R", covariant=True)
T = TypeVar("T")


def _anything() -> None:
    """Any change of the partition may do."""


@dataclass(frozen=True, slots=True)
class Parked(Generic[R]):
    """The operation waits for a change of `partition`. Times are the engine clock's seconds.

    `is_ripe` is an O(1) test whether `retry(False)` could answer now; at the deadline `retry(True)` must answer.
    `lacks` says, as things are, what must happen before it can be ripe; None: any change may do.
    """

    partition: str
    deadline: float
    is_ripe: Callable[[], bool]
    retry: Callable[[bool], "R | Parked[R] | Sliced[R | Parked[R]]"]
    lacks: Callable[[], Lack | None] = _anything


Outcome: TypeAlias = T | Parked[T] | Sliced[T | Parked[T]]
