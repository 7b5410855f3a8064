"""Draws from the seed which processes die in a chaos run, and after how much progress. (A seed cannot fix a time.)"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Death:
    """Once the bar has come to `after`, one of `kind` dies: the one at `lot` (0 to 1) among those who live.

    `is_reported`: its leases are released at once; else they run out.
    """

    bar: str
    after: int
    kind: str
    lot: float
    is_reported: bool


@dataclass(frozen=True, slots=True)
class Deaths:
    """How many of one kind of process die, and on whose progress that depends."""

    times: int
    bars: tuple[str, ...]


def draw(seed: int, totals: Mapping[str, int], wanted: Mapping[str, Deaths]) -> list[Death]:
    """The deaths of a run, `wanted` by kind. `totals`: where each bar ends. None is in a bar's last fifth."""
    chance = Random(f"deaths {seed}")  # noqa: S311  # a seeded draw is wanted
    found = []
    for kind, deaths in wanted.items():
        for _ in range(deaths.times):
            bar = chance.choice(deaths.bars)
            after = max(1, round(0.8 * chance.random() * totals[bar]))
            found.append(Death(bar, after, kind, chance.random(), chance.random() < 0.5))
    return found
