"""Claims of 8 rows, 16 at once, from a pool that outlasts the run: by wrk, and by our own client from one process."""

import json
from functools import partial
from pathlib import Path
from typing import Any

from .. import wrk
from ..child import Child
from ..outcome import Case, Outcome
from ..place import SEED, PeerLike, Place
from ..profile import CLAIMED
from ..server import CHUNK, Server
from ..turns import in_turns
from ..worker import Worker
from .puts import check_count, rate_lines, tail_lines

AT_ONCE, SIZE = 16, 8
LEAST = {"wrk": 10.0, "client": 6.0}
# Claims per second that the pool is made for: more than there can be here, and every reply is checked for its rows.
AT_MOST_PER_S, IF_NOT_JUDGED = 20_000, 8_000
POOL = "pool"


def run(place: Place) -> Outcome:
    """Theirs, ours by wrk and ours by the client, in turns; each round is a task of its own on the same pool."""
    note = ""
    with place.server("claims") as ours, Child(Worker, ours.url) as worker:
        fill(place, ours)
        sides: dict[str, Any] = {"client": Client(worker, place)}
        try:
            wrk.require()
            sides["wrk"] = Wrk(ours, place)
        except wrk.WrkMissing as error:
            note = str(error)
        peer = place.loaded(SEED, place.scale.large, "const")
        if peer is not None:
            sides[SEED] = partial(_theirs, peer, place)
        runs = in_turns(place.rounds("claims"), sides)
    data: dict[str, Any] = {side: found.rate() for side, found in runs.items()}
    row = "claim of 8, 16 at once"
    lines = rate_lines(place, row, LEAST, runs, note)
    if "wrk" in sides:
        data["wrk"]["tails"] = sides["wrk"].tails
        lines += tail_lines(place, row, sides["wrk"].tails)
    return Outcome(lines, data)


def _theirs(peer: PeerLike, place: Place) -> list[float]:
    return [peer.rate("claim", place.scale.seconds, AT_ONCE).calls_per_s]


def fill(place: Place, ours: Server) -> None:
    """The pool that all rounds claim from."""
    seconds = max(1.0, place.scale.seconds)  # wrk's shortest run
    profile = place.profile(min(CHUNK, place.scale.large * 64))
    per_s = AT_MOST_PER_S if place.scale.is_judged else IF_NOT_JUDGED
    ours.fill(POOL, profile, int(per_s * seconds * SIZE), place.tell)


class Wrk:
    """Each call is one round. Afterwards its task must have consumed as many rows as replies were counted."""

    def __init__(self, ours: Server, place: Place, at_once: int = AT_ONCE) -> None:
        self.ours, self.place, self.at_once = ours, place, at_once
        self.tails: list[dict[str, float]] = []
        self.body: Path = place.scratch / "claim.json"
        self.body.write_text(json.dumps({"fields": CLAIMED, "batch_size": SIZE, "compact": True}))

    def __call__(self) -> list[float]:
        task = f"/partitions/{POOL}/tasks/wrk_{len(self.tails)}"
        wanted = f'"size":{SIZE},'
        seconds = self.place.scale.seconds
        done = wrk.load("post", self.ours.url, seconds, self.at_once, f"/v1{task}/claims", self.body, 201, wanted)
        consumed = self.ours.call("GET", f"{task}/consumption?counts_only=true")["consumed"]
        check_count("consumed rows", consumed, done["requests"], SIZE, self.at_once)
        self.tails.append({"p50_ms": done["p50_ms"], "p99_ms": done["p99_ms"]})
        return [done["requests"] / done["seconds"]]


class Client:
    """Each call is one round through AsyncClient, in one process."""

    def __init__(self, worker: Child, place: Place) -> None:
        self.worker, self.place, self.rounds = worker, place, 0

    def __call__(self) -> list[float]:
        task = f"client_{self.rounds}"
        self.rounds += 1
        return [self.worker.do("claims", POOL, task, SIZE, self.place.scale.seconds, AT_ONCE)]


CASE = Case("claims", "claims of 8 from a ready pool, 16 at once, durable", run, compares=True)
