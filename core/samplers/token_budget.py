"""`token_budget`: rows up to a total weight, for micro-batches of about the same number of tokens."""

from fractions import Fraction
from itertools import accumulate
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from msgspec import Meta

from core.arrays import Ints
from core.state.partition import Partition
from core.state.supply.marks import ALL
from core.state.supply.sampler_index import WEIGHED, WeighedRows
from core.state.supply.supply import Supply
from core.state.where import EXACT, Numbers

from .by_row import ByWeight


class TokenBudget(ByWeight, frozen=True, kw_only=True):
    """Rows with a number at `weight`, lowest index first, while their sum stays within `budget`; at most `batch_size`.

    The next row that does not fit ends the batch; a first row over the budget goes out alone. A claim waits until the
    budget or `batch_size` is reached; `min_batch_size` is 1 where it is left out. A row without a number weighs
    `weight_default`, and is not eligible where that is left out.
    """

    budget: Annotated[int, Meta(gt=0)] | Annotated[float, Meta(gt=0)]

    def index(self, partition: Partition, supply: Supply) -> WeighedRows:
        """Rows that have a weight."""
        return self._looked_at(partition, supply, ALL)[0]

    def prepare(self, partition: Partition, supply: Supply, most: int) -> bool:
        """Their weights."""
        return self._looked_at(partition, supply, most)[1]

    def _looked_at(self, partition: Partition, supply: Supply, most: int) -> tuple[WeighedRows, bool]:
        by = self.by
        weighed = supply.sampler_index(WeighedRows, by)
        return weighed, weighed.refresh(
            supply.ready, lambda rows: by.exactly(partition.custom_meta_of(rows)), most * WEIGHED
        )

    def min_batch_size(self, batch_size: int) -> int:
        """At its deadline a claim takes what there is."""
        return 1

    def offers(self, partition: Partition, supply: Supply) -> int:
        """Rows that have a weight."""
        return self.index(partition, supply).rows.count

    def enough(self, partition: Partition, supply: Supply, batch_size: int) -> int:
        """What fits, once the budget is reached or another row would go beyond it; until then a full batch."""
        taken, is_full = self._fitting(partition, supply, batch_size)
        return len(taken) if is_full else batch_size

    def take(self, partition: Partition, supply: Supply, batch_size: int) -> Ints:
        """What fits."""
        return self._fitting(partition, supply, batch_size)[0]

    def _fitting(self, partition: Partition, supply: Supply, batch_size: int) -> tuple[Ints, bool]:
        """Rows, and whether the budget is reached by them or would be passed by the next."""
        weighed = self.index(partition, supply)
        rows = weighed.rows.lowest(batch_size)
        sums = _sums(weighed.weights[rows])
        beyond = np.flatnonzero(sums > self.budget)
        if len(beyond):
            return rows[: max(1, int(beyond[0]))], True
        return rows, len(rows) > 0 and bool(sums[-1] == self.budget)


def _sums(weights: Numbers) -> npt.NDArray[Any]:
    """[rows]: each weight and all before it; as fractions once a float64 might not hold an integer."""
    sums = np.cumsum(weights)
    if sums.dtype == np.float64 and np.abs(sums).max(initial=0.0) < EXACT:
        return sums
    exact = (Fraction(one.real) + Fraction(one.imag) for one in weights.tolist())
    return np.array([*accumulate(exact)], object)
