"""`lifo`: newest first, so that what is handed out is as fresh as can be; old rows may wait for ever."""

from core.arrays import Ints
from core.state.partition import Partition
from core.state.supply.supply import Supply

from .by_row import ByRow


class Lifo(ByRow, frozen=True):
    """Any rows of the supply, highest index first. No arguments."""

    def take(self, partition: Partition, supply: Supply, batch_size: int) -> Ints:
        """The highest `batch_size` row numbers; rows stand in index order."""
        return supply.ready.highest(batch_size)
