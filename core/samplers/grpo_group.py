"""`grpo_group`: whole groups of exactly n (GRPO, arXiv 2402.03300: the answers to one prompt), or nothing."""

from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

from ..arrays import Ints
from ..errors import Invalid
from ..partition import Partition
from ..supply import GroupBy, GroupIndex, Supply
from .contract import Blocking


class GrpoGroup(Struct, frozen=True, forbid_unknown_fields=True):
    """Groups by `group_id`, oldest group first, or by `position`: rows k*n … k*n+n-1 ever inserted."""

    n_samples_per_prompt: Annotated[int, Meta(ge=1, le=65_536)]
    group_by: GroupBy = "group_id"

    @property
    def group_size(self) -> int:
        """Whole groups."""
        return self.n_samples_per_prompt

    def check(self, batch_size: int) -> None:
        """A batch is whole groups."""
        if batch_size % self.n_samples_per_prompt:
            raise Invalid.at(
                "body.batch_size", f"must be a multiple of n_samples_per_prompt={self.n_samples_per_prompt}"
            )

    def least(self, batch_size: int) -> int:
        """A full batch."""
        return batch_size

    def _index(self, partition: Partition, supply: Supply) -> GroupIndex:
        return supply.by_group(self.group_by, self.n_samples_per_prompt, partition.rows, partition.groups)

    def offers(self, partition: Partition, supply: Supply) -> int:
        """Rows of whole groups."""
        return self._index(partition, supply).whole.count * self.n_samples_per_prompt

    def enough(self, partition: Partition, supply: Supply, most: int) -> int:
        """A full batch."""
        return most

    def take(self, partition: Partition, supply: Supply, most: int) -> Ints:
        """Group after group, rows ascending within each."""
        return self._index(partition, supply).take(most // self.n_samples_per_prompt)

    def blocking(self, partition: Partition, supply: Supply | None) -> list[Blocking]:
        """Groups with too few or too many live rows."""
        if self.group_by == "position":
            return self._open_window(partition)
        sizes = partition.groups.size[: partition.groups.count]
        sizes = np.where(np.arange(len(sizes)) > 0, sizes, 0)
        small = np.flatnonzero((sizes > 0) & (sizes < self.n_samples_per_prompt))
        large = np.flatnonzero(sizes > self.n_samples_per_prompt)
        found = [("group-incomplete", small), ("group-oversized", large)]
        return [_blocking(partition, reason, numbers) for reason, numbers in found if len(numbers)]

    def _open_window(self, partition: Partition) -> list[Blocking]:
        """The last window, while rows of it are still to be inserted."""
        here = partition.rows.positions % self.n_samples_per_prompt
        if not here:
            return []
        first = partition.rows.positions - here
        known = partition.rows.position[: partition.rows.n]
        rows = np.flatnonzero((known >= first) & (partition.rows.live[: partition.rows.n] == 1))
        return [Blocking("group-incomplete", len(rows), tuple(partition.rows.global_index[rows[:10]].tolist()))]


def _blocking(partition: Partition, reason: str, numbers: Ints) -> Blocking:
    groups = partition.groups
    examples: Ints = np.flatnonzero(np.isin(groups.number[: partition.rows.n], numbers[:10]))
    examples = examples[partition.rows.live[examples] == 1][:10]
    return Blocking(
        reason,
        int(groups.size[numbers].sum()),
        tuple(partition.rows.global_index[examples].tolist()),
        group_ids=tuple(groups.ids[numbers[:10]].tolist()),
    )
