"""What a long run leaves behind: thousands of steps, every call keyed, everything deleted. Memory, disk, restart."""

import asyncio
import time
from dataclasses import asdict
from typing import Any

from batchmeta import AsyncClient, Retries

from ..child import Child
from ..outcome import Case, Line, Outcome, at_most
from ..place import Place
from ..server import server
from ..soak import Soak, standing
from ..turns import distribution
from ..worker import TIMEOUT_S

STEPS, MEMORY_MB, DISK_MB, RESTART_S = 2_000, 64, 128, 2.5
MB = 2**20
SETTLE_S = 5  # the service gives memory back, and drops old parts of its journal, beside its calls


class Soaking:
    """The steps, in a process of their own."""

    def __init__(self, url: str) -> None:
        self.runner = asyncio.Runner()
        self.soak = Soak(AsyncClient(url, timeout=TIMEOUT_S, retries=Retries(most=0)))

    def steps(self, count: int) -> list[float]:
        """Seconds of each."""
        return self.runner.run(self.soak.run(count))


def run(place: Place) -> Outcome:
    """All steps, then what is held, then one restart; judged where there were as many steps as the limits are for."""
    steps, folder = place.scale.steps, place.folder("soak")
    journal = folder / "journal"
    with server(folder / "first", journal=journal) as ours, Child(Soaking, ours.url) as worker:
        start = standing(ours.process.pid, journal)
        place.tell(f"{steps:,} steps")
        took = worker.do("steps", steps)
        time.sleep(SETTLE_S if place.scale.is_judged else 0)
        end = standing(ours.process.pid, journal)
    began = time.perf_counter()
    with server(folder / "again", journal=journal):
        restart_s = time.perf_counter() - began
    found = {"memory": (end.resident - start.resident) / MB, "disk": end.disk / MB, "restart": restart_s}
    data: dict[str, Any] = {"start": asdict(start), "end": asdict(end), "found": found, "steps": distribution(took)}
    return Outcome(_lines(place, found), data)


def _lines(place: Place, found: dict[str, float]) -> list[Line]:
    limits = {"memory": (MEMORY_MB, "MB"), "disk": (DISK_MB, "MB"), "restart": (RESTART_S, "s")}
    is_judged = place.scale.is_judged and place.scale.steps >= STEPS
    lines = []
    for name, (most, unit) in limits.items():
        row = f"after {place.scale.steps:,} steps of 512 x 28, keyed, all deleted: {name}"
        said = f"{found[name]:.1f} {unit}"
        lines.append(at_most(row, most, found[name], said, unit) if is_judged else Line(row, ours=said))
    return lines


CASE = Case("soak", "what 2,000 steps leave in memory, on disk, and for a restart", run)
