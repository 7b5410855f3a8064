"""One run from start to table: each case in turn, its results kept at once, whatever it started ended."""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from .outcome import Case, Line
from .place import Place, StartPeer, Tell
from .results import Results
from .scale import Scale
from .table import print_table

EQUALITY = "equality"


def chosen(cases: Sequence[Case], only: Sequence[str], scale: Scale) -> list[Case]:
    """The cases that `only` names (none: all). Equality comes before anything that is compared."""
    wanted = [case for case in cases if not only or case.name in only]
    if scale.is_judged and any(case.compares for case in wanted):
        return [case for case in cases if case in wanted or case.name == EQUALITY]
    return wanted


def conduct(cases: Sequence[Case], results: Results, scale: Scale, start: StartPeer | None, console: Console) -> bool:
    """Run them; whether all that must be reached was."""
    with (
        _bar(console, len(cases)) as (bar, task),
        _place(scale, results.path.parent, start, lambda text: bar.update(task, step=text)) as place,
    ):
        for case in cases:
            bar.update(task, description=case.name, step="")
            if not case.compares:
                place.dismiss()
            began = time.perf_counter()
            results.add(case.name, case.run(place), time.perf_counter() - began, place.found)
            bar.advance(task)
    lines = results.lines([case.name for case in cases])
    print_table(console, lines)
    return all(is_fine(line) for line in lines)


def is_fine(line: Line) -> bool:
    """Met, or nothing was to be reached."""
    return line.state in ("met", "-")


@contextmanager
def _place(scale: Scale, beside: Path, start: StartPeer | None, tell: Tell) -> Iterator[Place]:
    # Beside the results, not in /tmp: that may be memory, and journals are to be on disk.
    with (
        TemporaryDirectory(prefix="scratch-", dir=beside.absolute()) as name,
        closing(Place(scale, Path(name), tell, start)) as place,
    ):
        yield place


@contextmanager
def _bar(console: Console, total: int) -> Iterator[tuple[Progress, TaskID]]:
    columns = (
        TextColumn("{task.description:>11}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[step]}"),
    )
    # Seldom redrawn: drawing takes a share of the machine that is measured.
    with Progress(*columns, console=console, refresh_per_second=1) as progress:
        yield progress, progress.add_task("", total=total, step="")
