"""`rank_aware`: every caller of one rank and batch gets the same rows, lowest first when they are first asked for."""

from core.arrays import Ints
from core.state.partition import Partition
from core.state.supply.supply import Supply

from .by_rank import ByRank


class RankAware(ByRank, frozen=True):
    """The same rows, claim id and token for every caller of one `dp_rank` and `batch_index`; other ranks, other rows.

    Ranks may run ahead of each other. Rows that were released, or whose lease ended, go out again only there, with a
    new claim id and token. Once one of them was cleared, the same request is 410 `sample-cleared`.
    """

    @property
    def key(self) -> str:
        """One key for each rank and batch."""
        return f"rank_aware:{self.dp_rank}:{self.batch_index}"

    def take(self, partition: Partition, supply: Supply, batch_size: int) -> Ints:
        """The lowest `batch_size` row numbers."""
        return supply.ready.lowest(batch_size)
