"""The real service with a ticker on its event loop, which measures how late a callback runs that is due every ms.

    python -m bench.ticker [--out FILE] [--every-ms 1] -- <flags of the service>

It serves until SIGTERM or Ctrl-C, then prints p50, p99 and the largest lag, and writes all lags and the pauses of the
garbage collector to FILE. SIGUSR1 begins a new stretch, so that a warm-up can be left out; the last one is printed.
"""

import argparse
import asyncio
import gc
import json
import os
import signal
import socket
import sys
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app import process
from app.settings import SettingsRefused, load

from .turns import percentile


@dataclass(frozen=True, slots=True)
class Stretch:
    """Seconds, and the generation that each pause was for. Arrays: they cost the collector nothing."""

    lags: "array[float]" = field(default_factory=lambda: array("d"))
    pauses: "array[float]" = field(default_factory=lambda: array("d"))
    generations: "array[int]" = field(default_factory=lambda: array("b"))

    def plain(self) -> dict[str, list[Any]]:
        """As JSON has it."""
        return {"lags": list(self.lags), "pauses": list(self.pauses), "generations": list(self.generations)}


class Watch:
    """Records the lags of the ticker and the pauses of the garbage collector."""

    def __init__(self, every_s: float) -> None:
        self.every_s = every_s
        self.stretches = [Stretch()]
        self._began = 0.0

    def start(self) -> None:
        """On the running loop."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_signal_handler(signal.SIGUSR1, self.begin)
        gc.callbacks.append(self._collected)
        self._arm()

    def begin(self) -> None:
        """A new stretch."""
        self.stretches.append(Stretch())

    def _arm(self) -> None:
        # The loop's own clock has whole milliseconds: lateness is measured by a finer one.
        self._due = time.perf_counter() + self.every_s
        self._loop.call_later(self.every_s, self._tick)

    def _tick(self) -> None:
        self.stretches[-1].lags.append(max(0.0, time.perf_counter() - self._due))
        self._arm()

    def _collected(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._began = time.perf_counter()
            return
        self.stretches[-1].pauses.append(time.perf_counter() - self._began)
        self.stretches[-1].generations.append(info["generation"])


def serve(watch: Watch, flags: Sequence[str]) -> int:
    """The service as `python -m app` runs it, watched. Raises SettingsRefused, StartRefused."""

    class Ticking(process.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            watch.start()

    process.Server = Ticking  # type: ignore[misc]  # the one seam: the loop is made inside
    return process.serve(load(flags, os.environ))


def summary(lags: Sequence[float]) -> str:
    """One line."""
    if not lags:
        return "no tick was seen"
    p50, p99 = (percentile(lags, percent) * 1e3 for percent in (50, 99))
    return f"{len(lags)} ticks: p50 {p50:.2f} ms, p99 {p99:.2f} ms, max {max(lags) * 1e3:.2f} ms late"


def main(arguments: Sequence[str]) -> int:
    """The service's exit status; 2 where it could not start or the file cannot be written."""
    parser = argparse.ArgumentParser(
        prog="bench.ticker",
        description="The service with a ticker on its event loop.",
        epilog="Flags of the service come after --",
    )
    parser.add_argument("--out", type=Path, help="where to write all lags and pauses, as JSON")
    parser.add_argument("--every-ms", type=float, default=1.0, help="how often the ticker is due (1)")
    parser.add_argument("flags", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    watch = Watch(given.every_ms / 1e3)
    try:
        if given.out is not None:
            given.out.touch()
        status = serve(watch, given.flags)
        if given.out is not None:
            given.out.write_text(json.dumps([stretch.plain() for stretch in watch.stretches]))
    except (SettingsRefused, process.StartRefused, OSError) as error:
        sys.stderr.write(f"bench.ticker: {error}\n")
        return 2
    sys.stdout.write(summary(watch.stretches[-1].lags) + "\n")
    return status


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(status)  # the interpreter's own way out takes seconds where torch is loaded
