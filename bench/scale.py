"""How much of everything a run does: the full measurement, a quick look, or a smoke test that judges no time."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """`calls` per round and side, `tail_calls` where a p99 is judged; `seconds` of a load, `sampled_s` of a profile."""

    name: str
    rounds: int
    calls: int
    tail_calls: int
    seconds: float
    sizes: tuple[int, ...]
    large: int
    partitions: tuple[int, ...]
    neighbours: tuple[int, int]
    stored: int
    pool: int
    workers: int
    sampled_s: float
    is_judged: bool = True

    @property
    def rows(self) -> int:
        """The bucket that is judged."""
        return self.sizes[-1]


FULL = Scale(
    "full",
    5,
    40,
    200,
    4.0,
    (1, 512, 1024),
    8192,
    (1_000, 10_000, 100_000, 1_000_000),
    (50, 10_000),
    100_000,
    30_000,
    8,
    20,
)
QUICK = Scale(
    "quick",
    2,
    20,
    200,
    2.0,
    (1, 512, 1024),
    8192,
    (1_000, 10_000, 100_000, 1_000_000),
    (50, 10_000),
    50_000,
    30_000,
    8,
    10,
)
SMOKE = Scale("smoke", 1, 2, 8, 0.2, (1, 16), 32, (200, 400), (2, 200), 500, 100, 2, 1, is_judged=False)
