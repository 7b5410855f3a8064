"""The types of a case and its outcome: lines of the table with their verdicts, and the figures behind them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from .turns import Runs

if TYPE_CHECKING:
    from .place import Place

# A p99 may be so many times the median. It takes so many calls to have one, and so long a median to be the code's own:
# what the machine takes from any thread is more than twice a shorter one (docs/benchmarks-notes.md).
TAIL, ENOUGH, LEAST_S = 3, 200, 1e-4
State = Literal["met", "NOT MET", "not measured", "-"]


@dataclass(frozen=True, slots=True)
class Line:
    """One row of the table. `state` is "-" without a target; `note` says why it was not measured."""

    row: str
    theirs: str = "-"
    ours: str = "-"
    ratio: float | None = None
    must: str = "-"
    state: State = "-"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one case: its lines, and `data`, plain JSON, which the report and the plots read."""

    lines: list[Line]
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Case:
    """One file of `cases/`. `compares`: with a peer, so that equality of the results comes first."""

    name: str
    measures: str
    run: "Callable[[Place], Outcome]"
    compares: bool = False


def at_least(row: str, least: float | None, value: float, theirs: str, ours: str) -> Line:
    """Judge `value`, how many times better ours is; without `least` only show it."""
    if least is None:
        return Line(row, theirs, ours, round(value, 2))
    state: State = "met" if value >= least else "NOT MET"
    return Line(row, theirs, ours, round(value, 2), f">= {least:g} x", state)


def at_most(row: str, most: float, value: float, ours: str, unit: str = "x") -> Line:
    """Judge `value`, a ratio or of another `unit`, which must not exceed `most`; ours alone."""
    state: State = "met" if value <= most else "NOT MET"
    is_ratio = unit == "x"
    return Line(row, "-", ours, round(value, 2) if is_ratio else None, f"<= {most:g} {unit}", state)


def tails(runs: Mapping[str, Runs]) -> list[Line]:
    """One line for all rows of a case: the p99 over the median of the worst.

    Rows with few calls have no p99; that of rows below LEAST_S is shown with them and not judged.
    """
    judged = {row: found for row, found in runs.items() if len(found.values) >= ENOUGH and found.median >= LEAST_S}
    over = {row: found.at(99) / found.median for row, found in judged.items()}
    if not over:
        return []
    worst = max(over, key=over.__getitem__)
    row = f"p99 over median, the worst of {len(over)}: {worst}" if len(over) > 1 else f"{worst}: p99 over median"
    return [at_most(row, TAIL, over[worst], ms(runs[worst]))]


def unmeasured(row: str, must: str, note: str) -> Line:
    """A line that could not be measured."""
    return Line(row, must=must, state="not measured", note=note)


def ms(runs: Runs) -> str:
    """Median and p99 as the table shows them."""
    return f"{_short(runs.median)} (p99 {_short(runs.at(99))}) ms"


def _short(seconds: float) -> str:
    value = seconds * 1e3
    return f"{value:.3f}" if value < 1 else f"{value:.1f}"


def per_s(runs: Runs) -> str:
    """A rate as the table shows it."""
    return f"{runs.median:,.0f}/s"
