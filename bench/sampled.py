"""`--profile CASE`: where the service's time goes under one load, as a flame graph and the share of each layer.

py-spy samples all threads of the service from outside, C included, while wrk keeps it busy. It stops the service for
each sample, so that rates under it are lower than those of the cases.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from .cases import claims, puts, reads
from .flame import svg
from .layers import LAYERS, LOCKED, count, shares, stacks
from .machine import machine, now
from .place import Place
from .server import Server

PER_S = 50
TIMEOUT_S = 60
Load = Callable[[], list[float]]


class ProfileFailed(RuntimeError):
    """The service could not be sampled; one line."""


@contextmanager
def _put(place: Place, ours: Server, at_once: int) -> Iterator[Load]:
    yield puts.Wrk(ours, puts.body_file(place, place.profile(puts.ROWS)), place, at_once)


@contextmanager
def _claim(place: Place, ours: Server, at_once: int) -> Iterator[Load]:
    claims.fill(place, ours)
    yield claims.Wrk(ours, place, at_once)


@contextmanager
def _read(place: Place, ours: Server, at_once: int) -> Iterator[Load]:
    ours.load(reads.PARTITION, place.profile(place.scale.rows))
    yield reads.Wrk(ours, place, at_once)


LOADS = {
    "put": (partial(_put, at_once=puts.AT_ONCE), f"one-key puts of 28 fields, {puts.AT_ONCE} at once"),
    "put-alone": (partial(_put, at_once=1), "one-key puts of 28 fields, one after the other"),
    "claim": (partial(_claim, at_once=claims.AT_ONCE), f"claims of {claims.SIZE}, {claims.AT_ONCE} at once"),
    "claim-alone": (partial(_claim, at_once=1), f"claims of {claims.SIZE}, one after the other"),
    "read": (partial(_read, at_once=reads.AT_ONCE), f"reads of a whole batch x 28 fields, {reads.AT_ONCE} at once"),
    "read-alone": (partial(_read, at_once=1), "reads of a whole batch x 28 fields, one after the other"),
}


def profile(place: Place, name: str, folder: Path, console: Console) -> list[Path]:
    """Sample the service under this load. Writes and returns the graph and the shares. Raises ProfileFailed."""
    make, title = LOADS[name]
    raw = place.folder("profile") / "stacks.txt"
    with place.server("profile") as ours, make(place, ours) as load:
        load()  # what is made once is made
        place.tell(f"sampling: {title}")
        rates = _sample(ours, load, place.scale.sampled_s, raw)
    found = stacks(raw.read_text())
    rate = round(sum(rates) / len(rates))
    graph, table = folder / f"profile-{name}.svg", folder / f"profile-{name}.json"
    graph.write_text(svg(found, f"{title}: {rate:,}/s under py-spy"))
    told = {"case": name, "load": title, "date": now(), "machine": machine(), "calls_per_s": rate} | _told(count(found))
    table.write_text(json.dumps(told, indent=1) + "\n")
    _print(console, title, told)
    return [graph, table]


def _told(samples: Counter[str]) -> dict[str, Any]:
    """The figures, as the file has them. Raises ProfileFailed."""
    at_work = sum(samples[layer] for layer in LAYERS)
    if not at_work:
        raise ProfileFailed("py-spy saw the service do nothing")
    locked = 100 * samples[LOCKED] / (at_work + samples[LOCKED])
    return {
        "samples": at_work,
        "shares_percent": {layer: round(share, 2) for layer, share in shares(samples).items()},
        "waits_for_interpreter_percent": round(locked, 2),
    }


def _sample(ours: Server, load: Load, seconds: float, raw: Path) -> list[float]:
    """Run the load again and again until py-spy ends; the rates."""
    spy = Path(sys.executable).with_name("py-spy")
    command = [str(spy), "record", "--format", "raw", "--output", str(raw), "--pid", str(ours.process.pid)]
    command += ["--duration", str(max(1, round(seconds))), "--rate", str(PER_S), "--threads", "--native", "--idle"]
    rates: list[float] = []
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603  (ours)
        while process.poll() is None:
            rates += load()
        _, said = process.communicate(timeout=TIMEOUT_S)
    if process.returncode or not raw.exists():
        raise ProfileFailed(f"py-spy: {' '.join(said.split()[-30:])} (it needs the right to trace the service)")
    return rates


def _print(console: Console, title: str, told: dict[str, Any]) -> None:
    console.print(f"where the service's time goes: {title}")
    table = Table(box=None, header_style="bold underline")
    table.add_column("layer")
    table.add_column("share", justify="right")
    for layer, share in told["shares_percent"].items():
        table.add_row(layer, f"{share:.1f} %")
    console.print(table)
    locked = f"{told['waits_for_interpreter_percent']:.0f} % of the time"
    console.print(f"{told['samples']:,} samples; a thread that has work {LOCKED} {locked}")
