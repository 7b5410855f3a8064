"""How late the event loop is while workers write and read batches of 1,024 x 28 without pause."""

import os
import signal
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ..child import Child
from ..outcome import Case, Line, Outcome, at_most
from ..place import Place
from ..profile import Json
from ..server import seen, ticking
from ..turns import distribution, percentile
from ..worker import Worker, arguments

P99_MS, MOST_MS = 5, 25


def run(place: Place) -> Outcome:
    """One load run of `workers` processes; the ticker sits inside the server."""
    folder = place.folder("loop")
    cycles = _load(place, folder)
    idle, _, busy = seen(folder)
    data: dict[str, Any] = {
        "workers": place.scale.workers,
        "cycles": cycles,
        "ticks": len(busy["lags"]),
        "idle": distribution(idle["lags"]),
        "distribution": distribution(busy["lags"]),
    }
    return Outcome(_lines(place, busy["lags"], f"{place.scale.workers} workers, {cycles} batches"), data)


def _load(place: Place, folder: Path) -> int:
    """Three stretches: idle, warming up, busy. Returns how many batches the last one had."""
    rows, seconds = place.scale.rows, place.scale.seconds
    profile = place.profile(rows)
    body = arguments(profile.body(0, rows)) | {"keys": profile.keys, "create": True}
    with ExitStack() as stack:
        ours = stack.enter_context(ticking(folder))
        workers = [stack.enter_context(Child(Worker, ours.url)) for _ in range(place.scale.workers)]
        place.tell("the loop with nothing to do")
        time.sleep(seconds)
        os.kill(ours.process.pid, signal.SIGUSR1)
        _churn(workers, body, seconds / 4)
        place.tell(f"the loop under {len(workers)} workers")
        os.kill(ours.process.pid, signal.SIGUSR1)
        return _churn(workers, body, seconds * 3)


def _churn(workers: list[Child], body: Json, seconds: float) -> int:
    for number, worker in enumerate(workers):
        worker.begin("churn", f"w{number}", body, seconds)
    return sum(worker.end() for worker in workers)


def _lines(place: Place, lags: list[float], load: str) -> list[Line]:
    p99, most = percentile(lags, 99) * 1e3, max(lags) * 1e3
    row = f"lag of a 1 ms ticker on the loop, {load}"
    if not place.scale.is_judged:
        return [Line(f"{row}, p99", ours=f"{p99:.2f} ms"), Line(f"{row}, max", ours=f"{most:.2f} ms")]
    return [
        at_most(f"{row}, p99", P99_MS, p99, f"{p99:.2f} ms", "ms"),
        at_most(f"{row}, max", MOST_MS, most, f"{most:.2f} ms", "ms"),
    ]


CASE = Case("loop", "lag of the event loop under eight busy workers", run)
