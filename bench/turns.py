"""Timing in turns: the sides of a comparison run round by round, so that a slow minute of the machine affects all."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

# The points of a distribution that are kept: enough to draw it.
POINTS = (*range(100), 99.5, 99.9, 100)


@dataclass(frozen=True, slots=True)
class Runs:
    """One side of a comparison: per round what was measured, seconds of calls or a rate."""

    rounds: tuple[tuple[float, ...], ...]

    @property
    def values(self) -> list[float]:
        """Of all rounds together."""
        return [value for one in self.rounds for value in one]

    @property
    def median(self) -> float:
        """Of all values."""
        return median(self.values)

    def at(self, percent: float) -> float:
        """The value that so many percent do not exceed."""
        return percentile(self.values, percent)

    @property
    def medians(self) -> list[float]:
        """One per round; lowest and highest are the spread."""
        return [median(one) for one in self.rounds]

    def seconds(self) -> dict[str, Any]:
        """As the results file keeps times, in milliseconds."""
        spread = [_ms(value) for value in self.medians]
        return {
            "median_ms": _ms(self.median),
            "p99_ms": _ms(self.at(99)),
            "spread_ms": [min(spread), max(spread)],
            "calls": len(self.values),
            "rounds": len(self.rounds),
        }

    def rate(self) -> dict[str, Any]:
        """As the results file keeps calls per second."""
        spread = [round(value) for value in self.medians]
        return {"per_s": round(self.median), "spread_per_s": [min(spread), max(spread)], "rounds": len(self.rounds)}


def _ms(seconds: float) -> float:
    return round(seconds * 1e3, 4)


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that so many percent of `values` do not exceed: one that was measured, none between two."""
    return float(np.percentile(values, percent, method="inverted_cdf"))


def distribution(values: Sequence[float]) -> dict[str, list[float]]:
    """A distribution as its values, in milliseconds, at POINTS."""
    return {"percent": [float(at) for at in POINTS], "ms": [_ms(percentile(values, at)) for at in POINTS]}


def in_turns(rounds: Iterable[int], sides: Mapping[str, Callable[[], Sequence[float]]]) -> dict[str, Runs]:
    """Measure each side once a round. Every second round goes backwards, so that no side always comes after another."""
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in sides}
    for number in rounds:
        names = list(sides)[:: 1 if number % 2 == 0 else -1]
        for name in names:
            found[name].append(tuple(sides[name]()))
    return {name: Runs(tuple(measured)) for name, measured in found.items()}


def ratio(over: Runs, under: Runs) -> float:
    """The median of the rounds' ratios of medians: what a case is judged on."""
    return median(a / b for a, b in zip(over.medians, under.medians, strict=True))


def timed(call: Callable[[], object], calls: int) -> list[float]:
    """Seconds of each of `calls` calls."""
    took = []
    for _ in range(calls):
        began = time.perf_counter()
        call()
        took.append(time.perf_counter() - began)
    return took
