"""`rank_aware`: every caller of one rank and batch gets the same rows, lowest first when they are first asked for."""

from .by_rank import ByRank


class RankAware(ByRank, frozen=True, kw_only=True):
    """The same rows, claim id and token for every caller of one `dp_rank` and `batch_index`; other ranks, other rows.

    Ranks may run ahead of each other. Rows that were released, or whose lease ended, go out again only there, with a
    new claim id and token. Once one of them was cleared, the same request is 410 `sample-cleared`. With
    `n_samples_per_prompt` (1) only whole groups go out, oldest group first; `group_by` as `grpo_group` has it.
    """

    @property
    def key(self) -> str:
        """One key for each rank and batch."""
        return f"rank_aware:{self.dp_rank}:{self.batch_index}"
