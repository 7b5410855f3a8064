"""One-key puts of 28 fields, 64 at once, on disk before the answer: by wrk, and by our own client from one process."""

import json
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from .. import wrk
from ..child import Child
from ..outcome import TAIL, Case, Line, Outcome, at_least, at_most, per_s, unmeasured
from ..place import SEED, PeerLike, Place
from ..profile import Json, Profile
from ..server import Server
from ..turns import Runs, in_turns, ratio
from ..worker import Worker, arguments

AT_ONCE = 64
ROWS = 64
LEAST = {"wrk": 6.0, "client": 4.0}


def run(place: Place) -> Outcome:
    """Theirs, ours by wrk and ours by the client, in turns."""
    profile, note = place.profile(ROWS), ""
    peer = place.loaded(SEED, ROWS, "const")
    with place.server("puts") as ours, Child(Worker, ours.url) as worker:
        sides: dict[str, Any] = {"client": Client(ours, worker, profile, place)}
        try:
            wrk.require()
            sides["wrk"] = Wrk(ours, body_file(place, profile), place)
        except wrk.WrkMissing as error:
            note = str(error)
        if peer is not None:
            sides[SEED] = partial(_theirs, peer, place)
        runs = in_turns(place.rounds("puts"), sides)
    data: dict[str, Any] = {side: found.rate() for side, found in runs.items()}
    row = "one-key put, 64 at once"
    lines = rate_lines(place, row, LEAST, runs, note)
    if "wrk" in sides:
        data["wrk"]["tails"] = sides["wrk"].tails
        lines += tail_lines(place, row, sides["wrk"].tails)
    return Outcome(lines, data)


def _theirs(peer: PeerLike, place: Place) -> list[float]:
    return [peer.rate("put", place.scale.seconds, AT_ONCE).calls_per_s]


def body_file(place: Place, profile: Profile) -> Path:
    """The template of a put for wrk: @KEY@ stands where the key goes."""
    path = place.scratch / "put.json"
    path.write_text(json.dumps(profile.body(0, 1) | {"keys": ["@KEY@"]}, separators=(",", ":")))
    return path


def one_row_bodies(profile: Profile) -> list[Json]:
    """What the client is to send, key aside, row by row."""
    return [arguments(profile.body(row, row + 1)) for row in range(len(profile.keys))]


class Wrk:
    """Each call is one round. Afterwards there must be as many samples as replies were counted."""

    def __init__(self, ours: Server, body: Path, place: Place, at_once: int = AT_ONCE) -> None:
        self.ours, self.body, self.place, self.at_once = ours, body, place, at_once
        self.tails: list[dict[str, float]] = []

    def __call__(self) -> list[float]:
        partition = f"wrk_{len(self.tails)}"
        path = f"/v1/partitions/{partition}/production"
        prefix = self.place.profile(ROWS).keys[0]
        done = wrk.load("put", self.ours.url, self.place.scale.seconds, self.at_once, path, self.body, prefix)
        there = self.ours.call("GET", f"/partitions/{partition}")["num_samples"]
        check_count("samples", there, done["requests"], at_once=self.at_once)
        self.tails.append({"p50_ms": done["p50_ms"], "p99_ms": done["p99_ms"]})
        return [done["requests"] / done["seconds"]]


def check_count(what: str, there: int, counted: int, each: int = 1, at_once: int = AT_ONCE) -> None:
    """Compare with the replies; calls in flight when wrk stopped are done but not counted. Raises WrkFailed."""
    if not counted * each <= there <= (counted + at_once) * each:
        raise wrk.WrkFailed(f"{there} {what} after {counted} successful replies")


class Client:
    """Each call is one round through AsyncClient, in one process."""

    def __init__(self, ours: Server, worker: Child, profile: Profile, place: Place) -> None:
        self.ours, self.worker, self.place = ours, worker, place
        self.rows, self.prefix, self.rounds = one_row_bodies(profile), profile.keys[0], 0

    def __call__(self) -> list[float]:
        partition = f"client_{self.rounds}"
        self.rounds += 1
        return [self.worker.do("puts", partition, self.rows, self.prefix, self.place.scale.seconds, AT_ONCE)]


def rate_lines(place: Place, row: str, least: dict[str, float], runs: dict[str, Runs], note: str) -> list[Line]:
    """One line per way to call ours; `note` says why one was not measured."""
    return [_rate_line(place, f"{row}, by {way}", way, must, runs, note) for way, must in least.items()]


def _rate_line(place: Place, row: str, way: str, must: float, runs: dict[str, Runs], note: str) -> Line:
    if way not in runs:
        return unmeasured(row, f">= {must:g} x", note)
    ours = per_s(runs[way])
    if SEED in runs:
        return at_least(row, must, ratio(runs[way], runs[SEED]), per_s(runs[SEED]), ours)
    lacks = place.lacks(SEED)
    return Line(row, ours=ours, note=lacks) if not place.scale.is_judged else unmeasured(row, f">= {must:g} x", lacks)


def tail_lines(place: Place, row: str, tails: list[dict[str, float]]) -> list[Line]:
    """What wrk saw: the median round's p99 over its median."""
    if not place.scale.is_judged:
        return []
    middle = {name: median(tail[name] for tail in tails) for name in ("p50_ms", "p99_ms")}
    over = median(tail["p99_ms"] / tail["p50_ms"] for tail in tails)
    said = f"{middle['p50_ms']:.1f} (p99 {middle['p99_ms']:.1f}) ms"
    return [at_most(f"{row}, by wrk: p99 over median", TAIL, over, said)]


CASE = Case("puts", "one-key puts of 28 fields, 64 at once, durable", run, compares=True)
