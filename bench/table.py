"""The table at the end of a run."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from .outcome import Line, State

STYLES: dict[State, str] = {"met": "green", "NOT MET": "bold red", "not measured": "yellow", "-": "dim"}


def print_table(console: Console, lines: Sequence[Line]) -> None:
    """One row a line: what it is, theirs, ours, the ratio, what must be reached, and whether it was."""
    table = Table(box=None, header_style="bold underline")
    for heading in ("row", "theirs", "ours", "ratio", "must reach", ""):
        table.add_column(heading, justify="left" if heading in ("row", "") else "right", overflow="fold")
    for line in lines:
        name = f"{line.row} ({line.note})" if line.note else line.row
        state = f"[{STYLES[line.state]}]{line.state}[/]"
        table.add_row(_plain(name), _plain(line.theirs), _plain(line.ours), ratio_text(line), _plain(line.must), state)
    console.print(table)


def _plain(text: str) -> str:
    return text.replace("[", "\\[")


def ratio_text(line: Line) -> str:
    """The ratio as it is shown."""
    return "" if line.ratio is None else f"{line.ratio:.2f} x" if line.ratio < 10 else f"{line.ratio:.1f} x"
