"""`priority`: highest weight first (prioritized replay, arXiv 1511.05952, in its greedy form), ties by index."""

from core.arrays import Ints
from core.state.partition import Partition
from core.state.supply.marks import ALL
from core.state.supply.sampler_index import WEIGHED, RankedRows
from core.state.supply.supply import Supply

from .by_row import ByWeight


class Priority(ByWeight, frozen=True, kw_only=True):
    """Rows by the number at `weight` in their custom meta, highest first; equal ones by index.

    A row without a number there weighs `weight_default`, and is not eligible where that is left out. A weight that
    changes counts from then on.
    """

    def index(self, partition: Partition, supply: Supply) -> RankedRows:
        """By falling weight."""
        return self._looked_at(partition, supply, ALL)[0]

    def prepare(self, partition: Partition, supply: Supply, most: int) -> bool:
        """By falling weight."""
        return self._looked_at(partition, supply, most)[1]

    def _looked_at(self, partition: Partition, supply: Supply, most: int) -> tuple[RankedRows, bool]:
        by = self.by
        ranked = supply.sampler_index(RankedRows, by)
        return ranked, ranked.refresh(
            supply.ready, lambda rows: -by.exactly(partition.custom_meta_of(rows)), most * WEIGHED
        )

    def offers(self, partition: Partition, supply: Supply) -> int:
        """Rows that have a weight."""
        return self.index(partition, supply).count

    def take(self, partition: Partition, supply: Supply, batch_size: int) -> Ints:
        """The heaviest, heaviest first."""
        return self.index(partition, supply).lowest(batch_size)
