"""Samplers with memory on plain rows (contract#sampler-memory): what they take, and how it is split for ranks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tests.model.plain import Partition
from tests.model.samplers import Picker, weight


@dataclass
class ByRank(Picker):
    """Base."""

    rank: int = 0
    batch: int = 0
    by: str = "group_id"

    @property
    def key(self) -> str:
        """What the memory knows a claim by."""
        raise NotImplementedError

    @property
    def place(self) -> int:
        """Which of the key's shares it asks for."""
        return 0

    @property
    def arguments(self) -> dict[str, Any]:
        groups = {"n_samples_per_prompt": self.n, "group_by": self.by}
        return {"dp_rank": self.rank, "batch_index": self.batch, **groups}

    @property
    def said_once(self) -> dict[str, Any]:
        """Arguments that all claims of a key have alike."""
        return {name: value for name, value in self.arguments.items() if name not in ("dp_rank", "batch_index")}

    def offered(self, partition: Partition, takeable: list[int]) -> list[list[int]]:
        return [[index] for index in takeable] if self.n == 1 else partition.whole_groups(takeable, self.n, self.by)

    def check_split(
        self, partition: Partition, takeable: list[int], shares: list[list[int]], most: int, is_even: bool
    ) -> None:
        """These were set aside. `is_even`: as many for each rank; else they are the last ones of a sealed partition."""
        (share,) = shares
        groups = [share[at : at + self.n] for at in range(0, len(share), self.n)]
        offered = self.offered(partition, takeable)
        assert len(groups) == len({tuple(group) for group in groups}) == min(most // self.n, len(offered))
        assert all(group in offered for group in groups)
        assert self.n > 1 or groups == offered[: len(groups)]

    def check(self, partition: Partition, takeable: list[int], groups: list[list[int]], most: int) -> None:
        """One rank's; what all got is checked as one."""


@dataclass
class RankAware(ByRank):
    """Lowest first, at the first claim of a rank and batch; any whole groups where they have more rows than one."""

    name = "rank_aware"

    @property
    def key(self) -> str:
        return f"{self.name} {self.rank} {self.batch}"


@dataclass
class SeqlenBalanced(ByRank):
    """Whole groups with a weight in every row; any of them where groups have more rows than one."""

    name = "seqlen_balanced"
    ranks: ClassVar[int] = 2
    path: str = "w"
    default: float | None = None

    @property
    def key(self) -> str:
        return f"{self.name} {self.batch}"

    @property
    def place(self) -> int:
        return self.rank

    @property
    def arguments(self) -> dict[str, Any]:
        own = {"dp_size": self.ranks, "weight": self.path, "weight_default": self.default}
        return {**super().arguments, **own}

    def offered(self, partition: Partition, takeable: list[int]) -> list[list[int]]:
        groups = super().offered(partition, takeable)
        return [group for group in groups if not self.weightless(partition, group)]

    def weightless(self, partition: Partition, takeable: list[int]) -> list[int]:
        return [index for index in takeable if weight(partition.rows[index], self.path, self.default) is None]

    def check_split(
        self, partition: Partition, takeable: list[int], shares: list[list[int]], most: int, is_even: bool
    ) -> None:
        assert len(shares) == self.ranks
        offered, n = self.offered(partition, takeable), self.n
        count = min(most // n, len(offered))
        count -= count % self.ranks if is_even else 0
        groups = [share[at : at + n] for share in shares for at in range(0, len(share), n)]
        assert len(groups) == len({tuple(group) for group in groups}) == count
        assert all(group in offered for group in groups)
        assert n > 1 or sorted(groups) == offered[:count]
        sizes = [len(share) // n for share in shares]
        assert max(sizes) - min(sizes) <= (0 if is_even else 1)
        sums = [sum(self.weights(partition, share)) for share in shares]
        pieces = [sum(self.weights(partition, group)) for group in groups]
        assert spread(sums) <= spread(dealt(pieces, self.ranks)) + 1e-9 + 1e-15 * sum(map(abs, pieces))

    def weights(self, partition: Partition, indexes: Sequence[int]) -> list[float]:
        return [weight(partition.rows[index], self.path, self.default) or 0.0 for index in indexes]


def spread(sums: Sequence[float]) -> float:
    return max(sums) - min(sums)


def dealt(weights: Sequence[float], parts: int) -> list[float]:
    """Sums of parts of equal counts, but for one: the heaviest first, each to the lightest part that has room."""
    room, more = divmod(len(weights), parts)
    sums, counts = [0.0] * parts, [0] * parts
    for one in sorted(weights, reverse=True):
        part = min((at for at in range(parts) if counts[at] < room + bool(more)), key=lambda at: (sums[at], at))
        more -= counts[part] == room
        sums[part] += one
        counts[part] += 1
    return sums
