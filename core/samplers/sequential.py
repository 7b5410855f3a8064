"""`sequential`: lowest indexes first."""

from msgspec import Struct

from ..arrays import Ints
from ..partition import Partition
from ..supply import Supply
from .contract import Blocking


class Sequential(Struct, frozen=True, forbid_unknown_fields=True):
    """Any rows of the supply, lowest first. No arguments."""

    @property
    def group_size(self) -> int:
        """Each row for itself."""
        return 1

    def check(self, batch_size: int) -> None:
        """Every size can be served."""

    def offers(self, partition: Partition, supply: Supply) -> int:
        """All ready rows."""
        return supply.ready.count

    def take(self, partition: Partition, supply: Supply, most: int) -> Ints:
        """The lowest `most` row numbers; rows stand in index order."""
        return supply.ready.lowest(most)

    def blocking(self, partition: Partition) -> list[Blocking]:
        """Nothing of its own."""
        return []
