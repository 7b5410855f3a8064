"""What a flow saw, step by step, as plain values: the log of one plane is compared with that of the other."""

from collections.abc import Callable, Iterable
from typing import Any

from bench.peers.plain import Json, Plain

from .table import NOTHING_RAISED

KNOWN = ("builtins", "transfer_queue")


class Log:
    """One flow's steps, each with a name of its own.

    Rows are numbered in the order in which the flow meets them, as the two planes give out other global indexes.
    TransferQueue gives an index of a cleared row to a new one, so a flow says which rows are gone.
    """

    def __init__(self) -> None:
        self.steps: dict[str, Json] = {}
        self._numbers: dict[int, int] = {}
        self._met = 0
        self._plain = Plain(self._number)

    def see(self, step: str, value: object) -> None:
        """Keep a value under the name of its step. Raises ValueError for a name that was given before."""
        if step in self.steps:
            raise ValueError(f"two steps are called {step!r}")
        self.steps[step] = self._plain(value)

    def see_rows(self, step: str, indexes: Iterable[int]) -> None:
        """Keep which rows these are."""
        self.see(step, [self._number(int(index)) for index in indexes])

    def refused(self, step: str, call: Callable[[], Any]) -> None:
        """Keep what kind of error a call raises, as far as callers know it: Python's own or TransferQueue's."""
        try:
            call()
        except Exception as error:  # noqa: BLE001  # whatever it is, it is what the flow saw
            self.see(
                step, next(kind.__name__ for kind in type(error).__mro__ if kind.__module__.split(".")[0] in KNOWN)
            )
        else:
            self.see(step, NOTHING_RAISED)

    def gone(self, indexes: Iterable[int]) -> None:
        """These rows are cleared: who has one of their indexes later is another row."""
        for index in indexes:
            self._numbers.pop(index, None)

    def _number(self, index: int) -> int:
        if index not in self._numbers:
            self._numbers[index] = self._met
            self._met += 1
        return self._numbers[index]
