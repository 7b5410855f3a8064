"""How much of everything a run does: the full measurement, a quick look, or a smoke test that judges no time."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Scale:
    """`calls` per round and side, `tail_calls` where a p99 is judged; `seconds` of a load, `sampled_s` of a profile."""

    name: str
    rounds: int
    calls: int
    tail_calls: int
    seconds: float
    sampled_s: float
    sizes: tuple[int, ...]
    large: int
    partitions: tuple[int, ...]
    neighbours: tuple[int, int]
    stored: int
    pool: int
    big: int
    small: int
    leases: int
    steps: int
    workers: int
    is_judged: bool = True

    @property
    def rows(self) -> int:
        """The bucket that is judged."""
        return self.sizes[-1]


FULL = Scale(
    name="full",
    rounds=5,
    calls=40,
    tail_calls=200,
    seconds=4.0,
    sampled_s=20,
    sizes=(1, 512, 1024),
    large=8192,
    partitions=(1_000, 10_000, 100_000, 1_000_000),
    neighbours=(50, 10_000),
    stored=100_000,
    pool=30_000,
    big=1_000_000,
    small=20_000,
    leases=8_000,
    steps=2_000,
    workers=8,
)
QUICK = replace(
    FULL,
    name="quick",
    rounds=2,
    calls=20,
    seconds=2.0,
    sampled_s=10,
    stored=50_000,
    big=100_000,
    small=2_000,
    steps=200,
)
SMOKE = Scale(
    name="smoke",
    rounds=1,
    calls=2,
    tail_calls=8,
    seconds=0.2,
    sampled_s=1,
    sizes=(1, 16),
    large=32,
    partitions=(200, 400),
    neighbours=(2, 200),
    stored=500,
    pool=100,
    big=500,
    small=20,
    leases=100,
    steps=4,
    workers=2,
    is_judged=False,
)
