"""Readiness and claims on the CPU and each device that torch sees, by batch size, and where a device gets faster."""

import time

from app.convert import view
from app.routes import tasks_render
from batchmeta.wire.requests import Claim
from core.device import choose, found, measure_readiness
from core.operations.claim import Claimed, ClaimRequest, claim_now
from core.operations.consumption import reset_consumption
from core.samplers import sampler

from ..child import Child
from ..engines import grow, new_engine, settle, whole
from ..outcome import Case, Line, Outcome
from ..place import Place
from ..profile import CLAIMED, FIELDS
from ..turns import in_turns

SIZES = (8, 64, 512, 1024, 4096, 8192)


def devices() -> list[str]:
    """`cpu` and the other devices of this machine."""
    return [device.name for device in found(_quiet)]


def _quiet(_: str) -> None:
    """Devices that cannot be loaded are left out without a message."""


class OnDevice:
    """An engine whose bit words live on `device`, with one partition from which batches up to `most` are claimed."""

    def __init__(self, device: str, most: int) -> None:
        self.device = choose(device, _quiet)
        self.engine, self.most = new_engine(self.device), most
        grow(self.engine, "p", most * 2, FIELDS)

    def readiness(self, rows: int, rounds: int) -> float:
        """Median seconds of the check alone."""
        return measure_readiness(self.device, rows, rounds)

    def claim(self, rows: int, calls: int) -> list[float]:
        """Seconds of claims of `rows` rows with their replies."""
        request = Claim(fields=list(CLAIMED), batch_size=rows, compact=True)
        chosen = sampler("sequential", {})
        wanted = ClaimRequest("t", CLAIMED, rows, rows, 0.0, chosen, view(request, request.fields))
        self._once(wanted)
        return [self._once(wanted) for _ in range(calls)]

    def _once(self, wanted: ClaimRequest) -> float:
        reset_consumption(self.engine, "p", "t")
        began = time.perf_counter()
        answer = whole(claim_now(self.engine, "p", wanted))
        whole(tasks_render.claim(answer))
        took = time.perf_counter() - began
        settle(self.engine)
        if not isinstance(answer, Claimed):
            raise RuntimeError(f"a claim of {wanted.batch_size} found too little")
        return took


def run(place: Place) -> Outcome:
    """Measure; no target: the figures say which device to choose."""
    sizes = [size for size in SIZES if size <= place.scale.large]
    found = {device: _measure(place, device, sizes) for device in devices()}
    lines = [_line(device, rows, figures[rows]) for device, figures in found.items() for rows in sizes]
    lines += [_crossover(device, found, sizes) for device in found if device != "cpu"]
    if len(found) == 1:
        lines.append(Line("devices other than the CPU", note="not measured: torch sees none here"))
    return Outcome(
        lines, {device: {str(rows): each for rows, each in figures.items()} for device, figures in found.items()}
    )


def _measure(place: Place, device: str, sizes: list[int]) -> dict[int, dict[str, float]]:
    figures: dict[int, dict[str, float]] = {}
    with Child(OnDevice, device, sizes[-1]) as child:
        for rows in sizes:
            sides = {
                "readiness": lambda rows=rows: [child.do("readiness", rows, max(5, place.scale.calls))],
                "claim": lambda rows=rows: child.do("claim", rows, max(2, place.scale.calls // 2)),
            }
            runs = in_turns(place.rounds(f"{device}, {rows} rows"), sides)
            figures[rows] = {name: round(each.median * 1e3, 4) for name, each in runs.items()}
    return figures


def _line(device: str, rows: int, figures: dict[str, float]) -> Line:
    text = f"readiness {figures['readiness']:.3f} ms, claim {figures['claim']:.3f} ms"
    return Line(f"{device}, {rows:,} rows", ours=text)


def _crossover(device: str, found: dict[str, dict[int, dict[str, float]]], sizes: list[int]) -> Line:
    faster = [rows for rows in sizes if found[device][rows]["claim"] < found["cpu"][rows]["claim"]]
    text = f"from {faster[0]:,} rows" if faster else "at no size up to " + f"{sizes[-1]:,}"
    return Line(f"{device} claims faster than cpu", ours=text)


CASE = Case("devices", "readiness and claims on each device, by batch size", run)
