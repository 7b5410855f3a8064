"""Batch meta of whole partitions of three sizes, made in process: whole, backend meta alone, encoding alone."""

from functools import partial
from typing import Any

from ..child import Child
from ..inside import Inside
from ..outcome import Case, Line, Outcome, ms
from ..peers.peer import Timed
from ..place import BEFORE, SEED, Place
from ..turns import Runs, in_turns, ratio

# What is timed: their case, our verb, and how the table calls it.
PARTS: tuple[tuple[Timed, str, str], ...] = (
    ("generate", "request_to_bytes", "generate batch meta (ours: with its encoding)"),
    ("backend_meta", "backend_meta", "of it backend meta"),
    ("encode", "encode", "reply encoding"),
)
OURS = "ours"


def run(place: Place) -> Outcome:
    """Measure; no target: the figures say where time goes."""
    lines: list[Line] = []
    data: dict[str, Any] = {}
    for rows in (*place.scale.sizes[1:], place.scale.large):
        with Child(Inside) as inside:
            inside.do("load", rows, "const")
            peers = {version: place.loaded(version, rows, "const") for version in (BEFORE, SEED)}
            for theirs, ours, title in PARTS:
                sides = {
                    version: partial(peer.time, theirs, rows, _calls(place)) for version, peer in peers.items() if peer
                }
                sides[OURS] = partial(inside.do, ours, _calls(place))
                runs = in_turns(place.rounds(f"{title}, {rows} rows"), sides)
                lines += _lines(place, f"{title}, {rows:,} rows", runs)
                data.setdefault(theirs, {})[str(rows)] = {side: found.seconds() for side, found in runs.items()}
    return Outcome(lines, data)


def _calls(place: Place) -> int:
    return max(2, place.scale.calls // 4)


def _lines(place: Place, row: str, runs: dict[str, Runs]) -> list[Line]:
    ours = runs[OURS]
    return [
        Line(f"{row}, {version}", ms(runs[version]), ms(ours), round(ratio(runs[version], ours), 1))
        if version in runs
        else Line(f"{row}, {version}", ours=ms(ours), note=place.lacks(version))
        for version in (BEFORE, SEED)
    ]


CASE = Case("generate", "batch meta of 512 to 8,192 rows in process, and where the time goes", run, compares=True)
