"""The device of the bit words: `cpu`, `npu[:i]`, `cuda[:i]` or `auto`. A missing device stops the start; no fallback.

The host's words need no torch. It is imported when another device is named or `auto` looks for one, and `torch_npu`
when that may be an NPU; without CANN libraries its import fails, which is then the clear error at start.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from core.state.cells.readiness import HostWords, NewWords, mask_of

_FORM = re.compile(r"(cpu|auto|(npu|cuda)(:\d+)?)")
_FIELDS = 28


class DeviceUnavailable(Exception):
    """The device that was asked for is not there."""


@dataclass(frozen=True, slots=True)
class Device:
    """Its name, and how bit words are made on it."""

    name: str
    words: NewWords


CPU = Device("cpu", HostWords)


def choose(name: str, log: Callable[[str], None], measure: Callable[[Device], float] | None = None) -> Device:
    """The device of a setting; raises DeviceUnavailable with one line that says what to do.

    `measure` gives the seconds that `auto` compares; by default those of the readiness check.
    """
    if not _FORM.fullmatch(name):
        raise DeviceUnavailable(f"device {name!r}: use cpu, npu, npu:0, cuda, cuda:0 or auto")
    if name == "auto":
        return _fastest(log, measure or measure_readiness)
    return CPU if name == "cpu" else _named(name)


def found(log: Callable[[str], None]) -> list[Device]:
    """The CPU and one device of each kind that torch sees here; `log` gets a line for each that cannot be loaded."""
    devices = [CPU]
    for kind in ("cuda", "npu"):
        try:
            if _count(kind):
                devices.append(_on_torch(kind))
        except DeviceUnavailable as error:
            log(str(error))
    return devices


def _named(name: str) -> Device:
    kind, _, number = name.partition(":")
    count = _count(kind)
    if int(number or 0) >= count:
        raise DeviceUnavailable(f"device {name!r}: torch sees {count} {kind} device(s) here; use cpu or auto")
    return _on_torch(name)


def _count(kind: str) -> int:
    try:
        from core.state.cells import torch_readiness

        return torch_readiness.count(kind)
    except (ImportError, OSError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DeviceUnavailable(f"device {kind!r}: its libraries cannot be loaded ({reason}); use cpu") from error


def _on_torch(name: str) -> Device:
    from core.state.cells import torch_readiness

    return Device(name, torch_readiness.on(name))


def _fastest(log: Callable[[str], None], measure: Callable[[Device], float]) -> Device:
    """Measure the readiness check on each device there is; small gathers are launch-bound, so mostly the CPU wins."""
    seconds = [(measure(device), device) for device in found(log)]
    best = min(seconds, key=lambda each: each[0])[1]
    figures = ", ".join(f"{device.name} {took * 1e6:.1f} us" for took, device in seconds)
    log(f"device auto: readiness of 1,024 rows takes {figures}; taking {best.name}")
    return best


def measure_readiness(device: Device, rows: int = 1024, rounds: int = 50) -> float:
    """Median seconds of one gather, AND, compare of `rows` bit words on `device`, the answer brought to the host."""
    words = device.words(rows * 4)
    chosen, mask = np.arange(rows), mask_of(range(_FIELDS), words.width)
    words.write(chosen, np.full((rows, words.width), -1, np.int64))
    took = []
    for _ in range(rounds):
        start = time.perf_counter()
        words.complete(chosen, mask)
        took.append(time.perf_counter() - start)
    return sorted(took)[rounds // 2]
