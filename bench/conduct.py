"""Runs each case in turn, stores its results at once, and ends every process that it started."""

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
    """The cases that `only` names (none: all). The equality check runs before any comparison."""
    wanted = [case for case in cases if not only or case.name in only]
    if scale.is_judged and any(case.compares for case in wanted):
        return [case for case in cases if case in wanted or case.name == EQUALITY]
    return wanted


def conduct(cases: Sequence[Case], results: Results, scale: Scale, start: StartPeer | None, console: Console) -> bool:
    """Run them. Returns whether every target was reached."""
    with (
        _bar(console, len(cases)) as (bar, task),
        placed(scale, results.path.parent, start, lambda text: bar.update(task, step=text)) as place,
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
    """Whether the target was reached, or there is none."""
    return line.state in ("met", "-")


@contextmanager
def placed(scale: Scale, beside: Path, start: StartPeer | None, tell: Tell) -> Iterator[Place]:
    """A place with scratch space in the folder `beside`; all that it started is ended."""
    # Beside the results and not in /tmp, which may be in memory: journals must be on disk.
    beside.mkdir(parents=True, exist_ok=True)
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
