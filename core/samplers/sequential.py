"""`sequential`: lowest indexes first."""

from core.arrays import Ints
from core.state.partition import Partition
from core.state.supply.supply import Supply

from .by_row import ByRow


class Sequential(ByRow, frozen=True):
    """Any rows of the supply, lowest index first. No arguments."""

    def take(self, partition: Partition, supply: Supply, batch_size: int) -> Ints:
        """The lowest `batch_size` row numbers; rows stand in index order."""
        return supply.ready.lowest(batch_size)
