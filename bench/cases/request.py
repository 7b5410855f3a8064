"""From a decoded request to the bytes of its reply, all parts of 1,024 rows, `compact`."""

from functools import partial
from typing import Any

from ..child import Child
from ..inside import Inside
from ..outcome import Case, Line, Outcome, at_least, ms, tails, unmeasured
from ..place import BEFORE, SEED, Place
from ..profile import Backend
from ..turns import Runs, in_turns, ratio

LEAST: dict[Backend, float] = {"const": 20, "distinct": 5}
OURS = "ours"


def run(place: Place) -> Outcome:
    """Against both versions; judged against 0.1.11."""
    lines: list[Line] = []
    data: dict[str, Any] = {}
    for backend, least in LEAST.items():
        runs, size = _measure(place, backend)
        lines += [_line(place, version, backend, least, runs) for version in (SEED, BEFORE)]
        lines += tails({f"request to reply bytes, {backend}": runs[OURS]}) if place.scale.is_judged else []
        data[backend] = {side: found.seconds() for side, found in runs.items()} | {"reply_bytes": size}
    return Outcome(lines, data)


def _measure(place: Place, backend: Backend) -> tuple[dict[str, Runs], int]:
    rows, calls = place.scale.rows, place.scale.calls
    with Child(Inside) as inside:
        inside.do("load", rows, backend)
        peers = {version: place.loaded(version, rows, backend) for version in (BEFORE, SEED)}
        sides = {
            version: partial(peer.time, "request_to_bytes", rows, calls) for version, peer in peers.items() if peer
        }
        sides[OURS] = partial(inside.do, "request_to_bytes", calls)
        return in_turns(place.rounds(f"{backend} backend meta"), sides), inside.do("reply_bytes")


def _line(place: Place, version: str, backend: Backend, least: float, runs: dict[str, Runs]) -> Line:
    row, ours = f"request to reply bytes, {place.scale.rows:,} rows, {backend}, {version}", ms(runs[OURS])
    if version not in runs:
        is_wanted = version == SEED and place.scale.is_judged
        note = place.lacks(version)
        return unmeasured(row, f">= {least:g} x", note) if is_wanted else Line(row, ours=ours, note=note)
    faster = ratio(runs[version], runs[OURS])
    if version == SEED:
        return at_least(row, least, faster, ms(runs[version]), ours)
    return Line(row, ms(runs[version]), ours, round(faster, 1))


CASE = Case("request", "decoded request to reply bytes, all parts", run, compares=True)
