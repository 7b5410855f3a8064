"""An operator's own samplers: a correct one, and one for each way to break the contract. Material for tests."""

from typing import Literal

import numpy as np
from msgspec import Struct

from core.arrays import Ints
from core.samplers.by_row import ByRow
from core.state.partition import Partition
from core.state.supply.supply import Supply


class Every(ByRow, frozen=True):
    """Every n-th ready row; `breaks` says how it fails, if at all. `keeps`: so many rows never go out."""

    n: int = 2
    keeps: int = 0
    breaks: Literal["raises", "twice", "not-there", "too-many", "no-ints", "offers"] | None = None

    def offers(self, partition: Partition, supply: Supply) -> int:
        if self.breaks == "offers":
            raise ZeroDivisionError
        return supply.ready.count

    def take(self, partition: Partition, supply: Supply, batch_size: int) -> Ints:
        rows = supply.ready.all()[self.keeps :: self.n][:batch_size]
        if not len(rows):
            return rows
        wrong = {
            "twice": rows[[0, 0]],
            "not-there": np.array([10**9]),
            "too-many": np.tile(rows, batch_size + 1),
            "no-ints": rows.astype(np.float64),
        }
        if self.breaks == "raises":
            raise ZeroDivisionError
        return wrong.get(self.breaks or "", rows)


class NoStruct:
    pass


class Loose(Struct):
    pass


class NoTake(ByRow, frozen=True):
    pass


class OtherTake(ByRow, frozen=True):
    def take(self, supply: Supply) -> Ints:
        return supply.ready.all()


NO_CLASS = 7
