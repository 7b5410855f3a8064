"""What the user sees: bars while the crew works, one table and the verdict at its end."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from .account import Account, Tally

Advance = Callable[[str, int], None]


@contextmanager
def bars(console: Console, totals: dict[str, int]) -> Iterator[Advance]:
    """One bar per name; the yielded function moves them."""
    columns = (TextColumn("{task.description:>14}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        shown = {name: progress.add_task(name, total=total) for name, total in totals.items()}
        yield lambda name, count: progress.advance(shown[name], count)


def print_table(console: Console, title: str, tallies: list[Tally]) -> None:
    """Per task: samples put, consumed and deleted; calls of the service; bytes to and from storage."""
    table = Table(title=title, box=None, header_style="bold underline")
    for heading in ("task", "procs", "put", "consumed", "deleted", "calls", "seconds", "calls/s", "MB"):
        table.add_column(heading, justify="left" if heading == "task" else "right", no_wrap=True)
    for task in dict.fromkeys(tally.task for tally in tallies):
        table.add_row(*_line(task, [tally for tally in tallies if tally.task == task]))
    console.print(table)


def _line(task: str, tallies: list[Tally]) -> tuple[str, ...]:
    calls = sum(tally.calls for tally in tallies)
    seconds = max(tally.ended for tally in tallies) - min(tally.began for tally in tallies)
    put, consumed, deleted = (
        sum(len(indexes) for tally in tallies for indexes in getattr(tally, books).values())
        for books in ("put", "consumed", "deleted")
    )
    megabytes = sum(tally.bytes_moved for tally in tallies) / 1e6
    numbers = (len(tallies), put, consumed, deleted, calls)
    return (task, *map(str, numbers), f"{seconds:.2f}", f"{calls / seconds:.0f}", f"{megabytes:.1f}")


def print_verdict(console: Console, account: Account, also: Sequence[str] = ()) -> bool:
    """Print whether the account is right; `also` are faults that were found elsewhere."""
    faults = [*account.faults(), *also]
    if faults:
        console.print("[bold red]It does not add up:[/]")
        for line in faults:
            console.print(f"  {line}", markup=False)
        return False
    for partition, tasks in account.tasks.items():
        count = len(account.put(partition))
        console.print(f"{partition}: put = consumed by {', '.join(tasks)} = deleted = {count}", markup=False)
    values = sum(len(tally.stored) for tally in account.tallies)
    checked = sum(tally.checked for tally in account.tallies)
    console.print(f"storage: {values} values put = deleted; {checked} reads, every checksum right", markup=False)
    console.print("[bold green]Everything adds up: nothing twice, nothing missing.[/]")
    return True
