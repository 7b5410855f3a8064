"""The calls of TransferQueue's users, on its own controller and on ours: its interface, Ray and storage real on both.

Ours is durable; theirs keeps nothing. What both answer is compared before anything is timed.
"""

from contextlib import ExitStack
from functools import partial

from ..outcome import Case, Line, Outcome, at_least, ms, unmeasured
from ..peers.planes import Call, Plane
from ..peers.venv import PeerMissing
from ..place import SEED, Place
from ..turns import Runs, in_turns, ratio
from .equality import compare

ROWS = 512
OURS = "ours"
FEWER = 4  # a clear needs rows first, which takes longer than the clear
WHAT: dict[Call, str] = {
    "notify": "notify, 512 rows x 28",
    "kv_put": "kv_put, one key x 28",
    "tags": "kv_put, a tag alone",
    "kv_batch_get": "kv_batch_get, one key x 28",
    "get_meta": "get_meta, 512 rows x 28",
    "kv_retrieve_meta": "kv_retrieve_meta, 512 rows x 28",
    "kv_list": "kv_list, 512 keys",
    "check_consumption": "check_consumption_status, 512 rows",
    "clear": "kv_clear, 512 keys x 28",
}
LEAST: dict[Call, float] = dict.fromkeys(WHAT, 1.0) | {"notify": 3.0}


def run(place: Place) -> Outcome:
    """Without TransferQueue there is nothing to measure: all lines say so."""
    if not place.scale.is_judged:
        return Outcome([Line(_row(call), note="not without TransferQueue") for call in WHAT])
    with ExitStack() as stack:
        server = stack.enter_context(place.server("transferqueue"))
        sides: dict[str, Plane] = {}
        try:
            for side, url in ((SEED, None), (OURS, server.url)):
                place.tell(f"starting TransferQueue on {'its own controller' if url is None else 'ours'}")
                sides[side] = Plane.on(url, SEED, place.tell)
                stack.callback(sides[side].close)
        except PeerMissing as error:
            return Outcome([unmeasured(_row(call), f">= {LEAST[call]:g} x", str(error)) for call in WHAT])
        return _measured(place, sides)


def _measured(place: Place, sides: dict[str, Plane]) -> Outcome:
    for side in sides.values():
        side.fill(place.file(ROWS, "const"))
    compare(f"TransferQueue {SEED}", sides[SEED].answers(), sides[OURS].answers())
    runs = {call: _timed(place, sides, call) for call in WHAT}
    lines = [_line(call, found) for call, found in runs.items()]
    return Outcome(lines, {call: {side: one.seconds() for side, one in found.items()} for call, found in runs.items()})


def _timed(place: Place, sides: dict[str, Plane], call: Call) -> dict[str, Runs]:
    calls = place.scale.calls // FEWER if call == "clear" else place.scale.calls
    return in_turns(
        place.rounds(WHAT[call]), {name: partial(side.seconds, call, calls) for name, side in sides.items()}
    )


def _row(call: Call) -> str:
    return f"TransferQueue's {WHAT[call]}"


def _line(call: Call, runs: dict[str, Runs]) -> Line:
    return at_least(_row(call), LEAST[call], ratio(runs[SEED], runs[OURS]), ms(runs[SEED]), ms(runs[OURS]))


CASE = Case("transferqueue", "TransferQueue's own calls, on its controller and on ours", run)
