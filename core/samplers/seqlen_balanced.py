"""`seqlen_balanced`: splits a global batch for all ranks at once, in whole groups and shares of about equal weight."""

from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from core.arrays import Ints
from core.errors import Invalid
from core.state.partition import Partition
from core.state.supply.marks import ALL
from core.state.supply.sampler_index import WEIGHED, WeighedRows
from core.state.supply.supply import Supply
from core.state.where import Floats, Weight

from .balance import balanced
from .by_rank import ByRank
from .by_row import EXAMPLES, WeightDefault, checked_weight
from .contract import Blocking

MAX_SPLIT = 65_536
Rows = Annotated[int, Meta(ge=1, le=MAX_SPLIT)]


class SeqlenBalanced(ByRank, frozen=True, kw_only=True):
    """`batch_size` rows for each of `dp_size` ranks, their `weight` (a path into custom meta) summing up alike.

    The first call of a `batch_index` splits the whole global batch, whole groups of `n_samples_per_prompt` (1) and as
    many for each rank, by the largest differencing method (Karmarkar and Karp, 1982) and exchanges. Each rank fetches
    its share, when its lease starts, and gets the same one again as with `rank_aware`. Shares that nobody has fetched
    count as leased. In a sealed partition the last split takes all whole groups left, and a share may be empty.
    `group_by` is as `grpo_group` has it; `weight_default` is the weight of a row that has no number at `weight`.
    """

    terms: ClassVar[tuple[str, ...]] = ("dp_size", "weight", "n_samples_per_prompt", "group_by", "weight_default")

    dp_size: Rows
    weight: str | tuple[str, ...]
    weight_default: WeightDefault | None = None

    @property
    def key(self) -> str:
        """One key for all ranks of a batch."""
        return f"seqlen_balanced:{self.batch_index}"

    @property
    def ranks(self) -> int:
        """A share for each."""
        return self.dp_size

    @property
    def place(self) -> int:
        """This rank's."""
        return self.dp_rank

    def term(self, name: str) -> object:
        """A path in either form is the same."""
        return list(self._weight.path) if name == "weight" else super().term(name)

    @property
    def _weight(self) -> Weight:
        return checked_weight(self.weight, self.weight_default)

    def check(self, batch_size: int) -> None:
        """Whole groups per rank, a rank that exists, a path, and a global batch of at most 65,536 rows."""
        super().check(batch_size)
        if self.dp_rank >= self.dp_size:
            raise Invalid.at("body.sampler.dp_rank", f"must be below dp_size={self.dp_size}")
        if batch_size * self.dp_size > MAX_SPLIT:
            raise Invalid.at(
                "body.batch_size", f"is per rank: {batch_size} x dp_size={self.dp_size} is more than {MAX_SPLIT}"
            )
        checked_weight(self.weight, self.weight_default)

    def _weighed(self, partition: Partition, supply: Supply) -> WeighedRows:
        """Rows that have a weight, up to date."""
        self._weigh(partition, supply, ALL)
        return supply.sampler_index(WeighedRows, self._weight)

    def _weigh(self, partition: Partition, supply: Supply, most: int) -> bool:
        weighed = supply.sampler_index(WeighedRows, self._weight)
        return weighed.refresh(supply.ready, lambda rows: self._weights(partition, rows), most * WEIGHED)

    def prepare(self, partition: Partition, supply: Supply, most: int) -> bool:
        """Whole groups, and weights."""
        return super().prepare(partition, supply, most) and self._weigh(partition, supply, most)

    def _weights(self, partition: Partition, rows: Ints) -> Floats:
        return self._weight.of(partition.custom_meta_of(rows))

    def offers(self, partition: Partition, supply: Supply) -> int:
        """Rows that have a weight; those of whole groups, whether they have one or not."""
        if self.n_samples_per_prompt == 1:
            return self._weighed(partition, supply).rows.count
        return self.groups.offers(partition, supply)

    def take(self, partition: Partition, supply: Supply, batch_size: int) -> Ints:
        """The oldest groups of which every row has a weight, group after group."""
        weighed = self._weighed(partition, supply)
        if self.n_samples_per_prompt == 1:
            return weighed.rows.lowest(batch_size)
        wanted = reach = batch_size // self.n_samples_per_prompt
        while True:
            rows = self.groups.take(partition, supply, reach * self.n_samples_per_prompt)
            groups = rows.reshape(-1, self.n_samples_per_prompt)
            eligible = groups[weighed.has(rows).reshape(groups.shape).all(axis=1)]
            if len(eligible) >= wanted or len(groups) < reach:
                return eligible[:wanted].reshape(-1)
            reach *= 2

    def split(self, partition: Partition, rows: Ints) -> list[Ints]:
        """Groups to ranks, oldest first in each; counts differ by one group at most."""
        groups = rows.reshape(-1, self.group_size)
        weights = self._weights(partition, rows).reshape(groups.shape).sum(axis=1)
        shares = balanced(np.asarray(weights), self.dp_size)
        return [groups[share].reshape(-1) for share in shares]

    def blocking(self, partition: Partition, supply: Supply | None) -> list[Blocking]:
        """Groups that are not whole, and rows that could go out if they had a weight."""
        groups = super().blocking(partition, supply)
        if supply is None:
            return groups
        rows = supply.ready.all()
        rows = rows[~self._weighed(partition, supply).has(rows)]
        examples = tuple(partition.rows.global_index[rows[:EXAMPLES]].tolist())
        return [*groups, *([Blocking("weight-missing", len(rows), examples)] if len(rows) else [])]
