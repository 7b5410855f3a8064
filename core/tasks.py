"""Consumption of one task: a small vector over rows, and the counts that outlive cleared rows."""

import numpy as np

from .arrays import Bits, Ints, filled, grown

FREE, CONSUMED = 0, 1


class Task:
    """`state` uint8 [rows]; `consumed` counts rows consumed since the last reset, cleared ones included."""

    __slots__ = ("consumed", "consumed_cleared", "state")

    def __init__(self, rows: int) -> None:
        self.state: Bits = filled(rows, FREE, np.uint8)
        self.consumed = 0
        self.consumed_cleared = 0

    @property
    def consumed_live(self) -> int:
        """Rows that are there and consumed."""
        return self.consumed - self.consumed_cleared

    def consume(self, rows: Ints) -> None:
        self.state[rows] = CONSUMED
        self.consumed += len(rows)

    def clear(self, rows: Ints) -> None:
        """These rows are gone; what was consumed of them still counts."""
        self.consumed_cleared += int((self.state[rows] == CONSUMED).sum())
        self.state[rows] = FREE

    def reset(self) -> None:
        self.state[:] = FREE
        self.consumed = self.consumed_cleared = 0

    def resize(self, rows: int) -> None:
        self.state = grown(self.state, rows, FREE)

    def keep(self, rows: Ints, capacity: int) -> None:
        self.state = grown(self.state[rows], capacity, FREE)
