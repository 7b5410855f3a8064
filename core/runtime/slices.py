"""Calls whose work is done in slices: the engine's thread does one step of one call after each drain, in turn.

How such work is written is in `core.slices`. A call stays here until its last step; one that was parked before keeps
its place in the parking lot meanwhile.
"""

from typing import Generic, TypeVar

from core.errors import Refused
from core.slices import Sliced

from .parking_lot import Waiter

C = TypeVar("C", bound=Waiter)


class Slices(Generic[C]):
    """The steps of each call that is in work, the one whose turn it is first."""

    def __init__(self) -> None:
        self._steps: dict[C, Sliced[object]] = {}
        self._withdrawn: dict[C, Refused] = {}

    def __len__(self) -> int:
        return len(self._steps)

    def __contains__(self, call: C) -> bool:
        return call in self._steps

    def add(self, call: C, steps: Sliced[object]) -> None:
        """Begin the work of this call, behind all others."""
        self.drop(call)
        self._steps[call] = steps

    def turn(self) -> tuple[C, Sliced[object]]:
        """The call whose turn it is; it goes to the end of the line."""
        call = next(iter(self._steps))
        steps = self._steps[call] = self._steps.pop(call)
        return call, steps

    def end(self, call: C) -> Refused | None:
        """Its work is done. Returns why its caller does not wait any more, if it said so."""
        self._steps.pop(call, None)
        return self._withdrawn.pop(call, None)

    def drop(self, call: C) -> bool:
        """End its work where it stands. False where it has none."""
        steps = self._steps.pop(call, None)
        self._withdrawn.pop(call, None)
        if steps is not None:
            steps.close()
        return steps is not None

    def withdraw(self, call: C, reason: Refused) -> None:
        """Its caller would not wait: if its steps end in a wait, it is answered with `reason`."""
        if call in self._steps:
            self._withdrawn[call] = reason

    def digest_of(self, key: str) -> bytes | None:
        """The digest of the request that is in work under this key."""
        return next((call.keyed.digest for call in self._steps if call.keyed and call.keyed.key == key), None)

    def all(self) -> list[C]:
        """All calls in work."""
        return list(self._steps)
