"""How long a restart takes with much to replay: one large partition, keyed and tagged, and many small ones beside."""

import time
from pathlib import Path
from typing import Any

from ..child import Child
from ..outcome import Case, Line, Outcome, at_most
from ..place import Place
from ..server import CHUNK, Server, server
from ..turns import Runs
from ..worker import Worker
from .puts import AT_ONCE, one_row_bodies

ROWS, MOST_S = 1_000_000, 6
LARGE = "large"


class Lost(RuntimeError):
    """What was written is not there after the restart."""


def run(place: Place) -> Outcome:
    """Written once, then started again each round, process and all; the slowest start is judged."""
    rows, small = place.scale.big, place.scale.small
    folder = place.folder("restart")
    journal = folder / "journal"
    with server(folder / "first", journal=journal) as ours:
        _write(place, ours)
    took = [(_restarted(place, folder / f"again_{number}", journal),) for number in place.rounds("restarts")]
    runs = Runs(tuple(took))
    row = f"restart with {rows:,} rows x 28, keyed, tagged, beside {small:,} partitions"
    slowest = max(runs.values)
    said = f"{slowest:.1f} s, the slowest of {len(took)}"
    data: dict[str, Any] = {"rows": rows, "small": small, "disk_bytes": _size(journal), "restart": runs.seconds()}
    if not place.scale.is_judged or rows < ROWS:
        return Outcome([Line(row, ours=said)], data)
    return Outcome([at_most(row, MOST_S, slowest, said, "s")], data)


def _write(place: Place, ours: Server) -> None:
    ours.fill(LARGE, place.profile(min(CHUNK, place.scale.big)), place.scale.big, place.tell)
    place.tell(f"writing {place.scale.small:,} small partitions")
    with Child(Worker, ours.url) as worker:
        worker.do("partitions", one_row_bodies(place.profile(64)), place.scale.small, AT_ONCE)


def _restarted(place: Place, folder: Path, journal: Path) -> float:
    began = time.perf_counter()
    with server(folder, journal=journal) as ours:
        took = time.perf_counter() - began
        samples = ours.call("GET", f"/partitions/{LARGE}")["num_samples"]
    if samples != place.scale.big:
        raise Lost(f"{samples:,} of {place.scale.big:,} samples are there after a restart")
    return took


def _size(journal: Path) -> int:
    return sum(path.stat().st_size for path in journal.rglob("*") if path.is_file())


CASE = Case("restart", "a restart with 1,000,000 rows and 20,000 partitions", run)
