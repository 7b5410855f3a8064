"""Bases of the samplers that hand out single rows: `ByRow`, and `ByWeight` for those that read a weight.

A sampler is a frozen Struct: its members are the arguments that a claim gives beside the name.
"""

from collections.abc import Sequence

from msgspec import Struct

from core.arrays import Ints
from core.state.partition import Partition
from core.state.supply.sampler_index import SamplerIndex
from core.state.supply.supply import Supply
from core.state.where import Floats, Weight, weight

from .contract import Blocking

EXAMPLES = 10
WeightDefault = int | float


def checked_weight(path: str | Sequence[str], default: WeightDefault | None) -> Weight:
    """The weight that a claim's arguments name. Raises Invalid."""
    return weight(path, "body.sampler.weight", default, "body.sampler.weight_default")


class ByRow(Struct, frozen=True, forbid_unknown_fields=True):
    """Base: every batch size can be served, a full batch is enough, and nothing is held back."""

    @property
    def group_size(self) -> int:
        """Each row for itself."""
        return 1

    def check(self, batch_size: int) -> None:
        """Every size can be served."""

    def min_batch_size(self, batch_size: int) -> int:
        """A full batch."""
        return batch_size

    def prepare(self, partition: Partition, supply: Supply, most: int) -> bool:
        """Nothing is kept beside the supply."""
        return True

    def offers(self, partition: Partition, supply: Supply) -> int:
        """All ready rows."""
        return supply.ready.count

    def enough(self, partition: Partition, supply: Supply, batch_size: int) -> int:
        """A full batch."""
        return batch_size

    def blocking(self, partition: Partition, supply: Supply | None) -> list[Blocking]:
        """Nothing of its own."""
        return []


class ByWeight(ByRow, frozen=True, kw_only=True):
    """Base: rows whose custom meta has a number at `weight`; the others weigh `weight_default`, and are not eligible
    where that is left out.
    """

    weight: str | list[str]
    weight_default: WeightDefault | None = None

    def check(self, batch_size: int) -> None:
        """Every size can be served, if the path can be meant."""
        checked_weight(self.weight, self.weight_default)

    @property
    def by(self) -> Weight:
        """The path and the default, checked. Raises Invalid."""
        return checked_weight(self.weight, self.weight_default)

    def weights(self, partition: Partition, rows: Ints) -> Floats:
        """float64 [rows]: NaN where there is no number, and no default."""
        return self.by.of(partition.custom_meta_of(rows))

    def index(self, partition: Partition, supply: Supply) -> SamplerIndex:
        """The eligible rows of the supply, up to date."""
        raise NotImplementedError

    def blocking(self, partition: Partition, supply: Supply | None) -> list[Blocking]:
        """Rows that could go out if they had a weight."""
        if supply is None:
            return []
        rows = supply.ready.all()
        rows = rows[~self.index(partition, supply).has(rows)]
        examples = tuple(partition.rows.global_index[rows[:EXAMPLES]].tolist())
        return [Blocking("weight-missing", len(rows), examples)] if len(rows) else []
