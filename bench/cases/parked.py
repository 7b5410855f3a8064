"""Whether 200 waiting claims slow down puts to other partitions."""

import json
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from select import select
from statistics import median
from typing import Any

from ..child import Child
from ..outcome import Case, Line, Outcome, at_most, ms
from ..place import Place
from ..profile import CLAIMED, Json
from ..server import HOST, Server
from ..turns import in_turns, percentile
from ..worker import Worker
from .puts import one_row_bodies

WAITING, MOST, WAIT_S = 200, 1.5, 60
SETTLE_S = 0.3


class NotParked(RuntimeError):
    """A claim that should wait got an answer."""


def run(place: Place) -> Outcome:
    """Puts one after the other, with and without them, in turns."""
    calls = max(place.scale.calls, place.scale.tail_calls * place.scale.rounds)
    rows = one_row_bodies(place.profile(64))
    with place.server("parked") as ours, Child(Worker, ours.url) as worker:
        puts = Puts(worker, rows, calls)
        puts()
        sides: dict[str, Callable[[], list[float]]] = {"without": puts, "with": lambda: _beside(ours, puts)}
        runs = in_turns(place.rounds(f"{calls} puts"), sides)
    over = zip(runs["with"].rounds, runs["without"].rounds, strict=True)
    worse = median(percentile(one, 99) / percentile(other, 99) for one, other in over)
    row = f"p99 of {calls:,} puts beside {WAITING} parked claims"
    data: dict[str, Any] = {side: found.seconds() for side, found in runs.items()} | {"p99_ratio": round(worse, 3)}
    if not place.scale.is_judged:
        return Outcome([Line(row, ours=ms(runs["with"]))], data)
    return Outcome([at_most(row, MOST, worse, f"{ms(runs['with'])} against {ms(runs['without'])}")], data)


class Puts:
    """Each call is one round, in a partition of its own."""

    def __init__(self, worker: Child, rows: list[Json], calls: int) -> None:
        self.worker, self.rows, self.calls, self.rounds = worker, rows, calls, 0

    def __call__(self) -> list[float]:
        self.rounds += 1
        found: list[float] = self.worker.do("put_times", f"p{self.rounds}", self.rows, "k", self.calls)
        return found


def _beside(ours: Server, puts: Puts) -> list[float]:
    text = json.dumps({"fields": CLAIMED, "batch_size": 8, "wait_s": WAIT_S})
    claims = [request(f"/v1/partitions/waiting_{number % 10}/tasks/t/claims", text) for number in range(WAITING)]
    with parked(ours, claims):
        return puts()


@contextmanager
def parked(ours: Server, claims: Sequence[bytes]) -> Iterator[None]:
    """Keep these claims waiting in the service, each on a connection. Raises NotParked if one of them was answered."""
    with ExitStack() as stack:
        lines = [stack.enter_context(socket.create_connection((HOST, ours.port))) for _ in claims]
        for line, claim in zip(lines, claims, strict=True):
            line.sendall(claim)
        ours.rest()  # what the claims look at is built first
        _require_silence(lines, SETTLE_S)
        yield
        _require_silence(lines, 0)


def request(path: str, text: str) -> bytes:
    """A POST as bytes."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
    )
    return (head + text).encode()


def _require_silence(lines: list[socket.socket], wait_s: float) -> None:
    answered, _, _ = select(lines, [], [], wait_s)
    if answered:
        raise NotParked(f"a parked claim was answered: {answered[0].recv(500).splitlines()[-1][:200]!r}")


CASE = Case("parked", "puts beside 200 parked claims", run)
