"""Draws from the seed which processes die in a chaos run, and after how much progress. (A seed cannot fix a time.)"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from .roles import ACTOR, ROLLOUT
from .samples import COMPUTED

SERVICE = "service"
# Of each kind of process how many die, and on whose progress that depends.
TIMES = {ROLLOUT: 3, "rank": 2, ACTOR: 2, SERVICE: 1}


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


def draw(seed: int, totals: Mapping[str, int]) -> list[Death]:
    """The deaths of a run; `totals`: where each bar ends. None is in a bar's last fifth: some are done then."""
    chance = Random(f"deaths {seed}")  # noqa: S311  # a seeded draw is wanted
    bars = {ROLLOUT: (ROLLOUT,), "rank": tuple(COMPUTED), ACTOR: (ACTOR,), SERVICE: (ROLLOUT, *COMPUTED, ACTOR)}
    found = []
    for kind, times in TIMES.items():
        for _ in range(times):
            bar = chance.choice(bars[kind])
            after = max(1, round(0.8 * chance.random() * totals[bar]))
            found.append(Death(bar, after, kind, chance.random(), chance.random() < 0.5))
    return found
