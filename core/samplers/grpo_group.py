"""`grpo_group`: whole groups of exactly n (GRPO, arXiv 2402.03300: the answers to one prompt), or nothing."""

from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

from core.arrays import Flags, Ints
from core.errors import Invalid
from core.state.partition import Partition
from core.state.supply.group_index import GroupBy, GroupIndex
from core.state.supply.supply import Supply

from .by_row import EXAMPLES
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

    def min_batch_size(self, batch_size: int) -> int:
        """A full batch."""
        return batch_size

    def _index(self, partition: Partition, supply: Supply) -> GroupIndex:
        return supply.by_group(self.group_by, self.n_samples_per_prompt, partition)

    def prepare(self, partition: Partition, supply: Supply, most: int) -> bool:
        """Whole groups."""
        return supply.look_at_groups(self.group_by, self.n_samples_per_prompt, partition, most)

    def offers(self, partition: Partition, supply: Supply) -> int:
        """Rows of whole groups."""
        return self._index(partition, supply).whole.count * self.n_samples_per_prompt

    def enough(self, partition: Partition, supply: Supply, batch_size: int) -> int:
        """A full batch."""
        return batch_size

    def take(self, partition: Partition, supply: Supply, batch_size: int) -> Ints:
        """Group after group, rows ascending within each."""
        return self._index(partition, supply).take(partition, batch_size // self.n_samples_per_prompt)

    def blocking(self, partition: Partition, supply: Supply | None) -> list[Blocking]:
        """Groups with too few or too many live rows; rows without a group are of none that is whole."""
        if self.group_by == "position":
            return self._open_windows(partition)
        sizes = partition.groups.size[: partition.groups.count]
        sizes = np.where(np.arange(len(sizes)) > 0, sizes, 0)
        small = np.flatnonzero((sizes > 0) & (sizes < self.n_samples_per_prompt))
        large = np.flatnonzero(sizes > self.n_samples_per_prompt)
        alone = _live(partition, partition.groups.number[: partition.rows.n] == 0)
        found = [("group-incomplete", small, alone), ("group-oversized", large, alone[:0])]
        return [_blocking(partition, *one) for one in found if len(one[1]) or len(one[2])]

    def _open_windows(self, partition: Partition) -> list[Blocking]:
        """Windows that lack a row, still to be inserted or gone for good, and those of two group ids."""
        n, rows = self.n_samples_per_prompt, _live(partition)
        windows = partition.rows.position[rows] // n
        first, place, counts = np.unique(windows, return_inverse=True, return_counts=True)
        numbers = partition.groups.number[rows]
        highest = np.zeros(len(first), numbers.dtype)
        np.maximum.at(highest, place, numbers)
        is_mixed = np.zeros(len(first), np.bool_)
        is_mixed[place[(numbers > 0) & (numbers != highest[place])]] = True
        rows = rows[((counts < n) | is_mixed)[place]]
        examples = tuple(partition.rows.global_index[rows[:EXAMPLES]].tolist())
        return [Blocking("group-incomplete", len(rows), examples)] if len(rows) else []


def _live(partition: Partition, among: Flags | None = None) -> Ints:
    is_live = partition.rows.is_live(slice(0, partition.rows.n))
    return np.flatnonzero(is_live if among is None else is_live & among)


def _blocking(partition: Partition, reason: str, numbers: Ints, alone: Ints) -> Blocking:
    """`numbers` of groups, and rows that are in none."""
    groups = partition.groups
    members = _live(partition, np.isin(groups.number[: partition.rows.n], numbers[:EXAMPLES]))
    examples = np.sort(np.concatenate([members[:EXAMPLES], alone[:EXAMPLES]]))[:EXAMPLES]
    return Blocking(
        reason,
        int(groups.size[numbers].sum()) + len(alone),
        tuple(partition.rows.global_index[examples].tolist()),
        group_ids=tuple(groups.ids[numbers[:EXAMPLES]].tolist()),
    )
