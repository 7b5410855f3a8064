"""Where tensors live: `cpu`, `npu[:i]`, `cuda[:i]` or `auto`, checked at start so that nothing falls back in silence.

`torch_npu` is imported only when an NPU is asked for or looked for; without CANN libraries its import fails, which is
then the clear error at start.
"""

import importlib
import importlib.util
import re
import time
from collections.abc import Callable

import torch

_FORM = re.compile(r"(cpu|auto|(npu|cuda)(:\d+)?)")


class DeviceUnavailable(Exception):
    """The device that was asked for is not there."""


def choose(
    name: str, log: Callable[[str], None], measure: Callable[[torch.device], float] | None = None
) -> torch.device:
    """The torch device of a setting; raises DeviceUnavailable with one line that says what to do.

    `measure` gives the seconds that `auto` compares; by default those of the readiness check.
    """
    if not _FORM.fullmatch(name):
        raise DeviceUnavailable(f"device {name!r}: use cpu, npu, npu:0, cuda, cuda:0 or auto")
    if name == "auto":
        return _fastest(log, measure or measure_readiness)
    if name != "cpu":
        _require(name)
    return torch.device(name)


def _require(name: str) -> None:
    kind, _, number = name.partition(":")
    if kind == "npu" and not hasattr(torch, "npu"):
        _import_npu()
    count = _count(kind)
    if int(number or 0) >= count:
        raise DeviceUnavailable(f"device {name!r}: torch sees {count} {kind} device(s) here; use cpu or auto")


def _import_npu() -> None:
    try:
        importlib.import_module("torch_npu")
    except (ImportError, OSError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DeviceUnavailable(f"device 'npu': torch_npu cannot be loaded ({reason}); use cpu") from error


def _count(kind: str) -> int:
    module = getattr(torch, kind, None)
    if module is None or not module.is_available():
        return 0
    return int(module.device_count())


def _fastest(log: Callable[[str], None], measure: Callable[[torch.device], float]) -> torch.device:
    """Measure the readiness check on each device there is; small gathers are launch-bound, so mostly the CPU wins."""
    if importlib.util.find_spec("torch_npu") and not hasattr(torch, "npu"):
        try:
            _import_npu()
        except DeviceUnavailable as error:
            log(str(error))
    names = ["cpu", *(kind for kind in ("cuda", "npu") if _count(kind))]
    seconds = {name: measure(torch.device(name)) for name in names}
    best = min(seconds, key=lambda name: seconds[name])
    figures = ", ".join(f"{name} {took * 1e6:.1f} us" for name, took in seconds.items())
    log(f"device auto: readiness of 1,024 rows takes {figures}; taking {best}")
    return torch.device(best)


def measure_readiness(device: torch.device, rows: int = 1024, rounds: int = 50) -> float:
    """Median seconds of one gather, AND, compare of `rows` bit words on `device`, the answer brought to the host."""
    words = torch.full((rows * 4, 1), -1, dtype=torch.int64, device=device)
    chosen = torch.arange(rows, dtype=torch.int64)
    mask = torch.full((1,), (1 << 28) - 1, dtype=torch.int64, device=device)
    took = []
    for _ in range(rounds):
        start = time.perf_counter()
        gathered = words.index_select(0, chosen.to(device))
        ((gathered & mask) == mask).all(1).cpu()
        took.append(time.perf_counter() - start)
    return sorted(took)[rounds // 2]
