"""`random`: a fixed shuffle. A row's place depends only on the seed and its index, so it never changes."""

from functools import partial
from typing import Annotated

import numpy as np
import numpy.typing as npt
from msgspec import Meta

from core.arrays import Ints
from core.state.partition import Partition
from core.state.supply.marks import ALL
from core.state.supply.sampler_index import WEIGHED, RankedRows
from core.state.supply.supply import Supply

from .by_row import ByRow

_GAMMA = np.uint64(0x9E3779B97F4A7C15)


class Random(ByRow, frozen=True):
    """Rows shuffled by `seed` (0 if left out) and index: the same seed, the same order, whoever asks and whenever."""

    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0

    def take(self, partition: Partition, supply: Supply, batch_size: int) -> Ints:
        """Those that the shuffle puts first."""
        self.prepare(partition, supply, ALL)
        return supply.sampler_index(RankedRows, self.seed).lowest(batch_size)

    def prepare(self, partition: Partition, supply: Supply, most: int) -> bool:
        """In the order of the shuffle."""
        ranked = supply.sampler_index(RankedRows, self.seed)
        places = partial(_places, self.seed, partition)
        return ranked.refresh(supply.ready, places, most * WEIGHED)


def _places(seed: int, partition: Partition, rows: Ints) -> npt.NDArray[np.uint64]:
    return place(seed, partition.rows.global_index[rows])


def place(seed: int, indexes: Ints) -> npt.NDArray[np.uint64]:
    """uint64 [indexes]: output `index` of the SplitMix64 generator that starts from the mixed seed; none is twice.

    SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014).
    """
    start = _mixed(np.array([seed], np.uint64) + _GAMMA)
    return _mixed(start + (indexes.astype(np.uint64) + np.uint64(1)) * _GAMMA)


def _mixed(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
