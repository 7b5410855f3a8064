"""The interface of samplers: a sampler reads a supply and names rows. It changes nothing; the claim takes them."""

from dataclasses import dataclass
from typing import Protocol

from core.arrays import Ints
from core.state.partition import Partition
from core.state.supply.supply import Supply


@dataclass(frozen=True, slots=True)
class Blocking:
    """One reason why rows are not handed out: how many, up to ten of their indexes, and the groups' ids (JSON)."""

    reason: str
    count: int
    global_indexes: tuple[int, ...] = ()
    field: str | None = None
    group_ids: tuple[bytes, ...] | None = None


class Sampler(Protocol):
    """1. Only rows of the supply, none twice, never more than asked. 2. Same supply and arguments, same rows.
    3. `offers` costs no more than the rows that changed since it was last asked, and is never less than `take` could
    give. 4. Where it has rows it hands some out once it is asked for one: in a sealed partition in which all that is
    left is ready, a claim that gets none is told that it is done. `core.samplers.by_row` has the answers that most
    samplers share.

    `batch_size` and `min_batch_size` are the claim's. Where a sampler splits a global batch (`ByRank.ranks`), `enough`
    and `take` are given the size of that: the batches of all ranks together.
    """

    @property
    def group_size(self) -> int:
        """Rows that are handed out together, side by side, and settle together; 1: each for itself."""

    def check(self, batch_size: int) -> None:
        """Raises Invalid where `batch_size` cannot be served, or an argument cannot be meant."""

    def min_batch_size(self, batch_size: int) -> int:
        """What `min_batch_size` is where a claim leaves it out."""

    def prepare(self, partition: Partition, supply: Supply, most: int) -> bool:
        """Look at no more than `most` blocks of 1,024 rows that changed since the last time. False while more are left:
        then nothing else is asked. (Where a partition is large the engine asks for this in steps, between other calls.)
        """

    def offers(self, partition: Partition, supply: Supply) -> int:
        """Rows that could go out now."""

    def enough(self, partition: Partition, supply: Supply, batch_size: int) -> int:
        """Rows for which a claim of `batch_size` need not wait any longer."""

    def take(self, partition: Partition, supply: Supply, batch_size: int) -> Ints:
        """Row numbers of up to `batch_size` rows, in the order they are handed out."""

    def blocking(self, partition: Partition, supply: Supply | None) -> list[Blocking]:
        """What this sampler holds back that `sequential` would not; no supply while a field is unknown."""
