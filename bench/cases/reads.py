"""A read that changes nothing, by a bare socket, against `/healthz` of the same application: what a call costs."""

import json
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from .. import wrk
from ..outcome import Case, Line, Outcome, at_most, ms, tails
from ..place import Place
from ..profile import FIELDS, PARTS
from ..server import CALL_S, HOST, Server
from ..turns import in_turns, ratio, timed
from .parked import request

MOST, AT_ONCE = 2.5, 4
PARTITION = "read"
PATH = f"/v1/partitions/{PARTITION}/batch-meta"


class WrongReply(RuntimeError):
    """Not the reply that was expected."""


def run(place: Place) -> Outcome:
    """One row of 28 fields, all parts, on one connection; both in turns."""
    calls = place.scale.tail_calls
    with place.server("reads") as ours:
        ours.load(PARTITION, place.profile(1))
        with line(ours) as kept:
            read = partial(exchange, kept, request(PATH, json.dumps(_body())))
            healthz = partial(exchange, kept, f"GET /healthz HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
            sides = {"read": partial(timed, read, calls), "healthz": partial(timed, healthz, calls)}
            runs = in_turns(place.rounds("reads"), sides)
    row = "a read of 1 row, raw socket, against /healthz"
    data: dict[str, Any] = {side: found.seconds() for side, found in runs.items()}
    if not place.scale.is_judged:
        return Outcome([Line(row, ours=ms(runs["read"]))], data)
    both = f"{ms(runs['read'])} against {ms(runs['healthz'])}"
    lines = [at_most(row, MOST, ratio(runs["read"], runs["healthz"]), both)]
    return Outcome(lines + tails({"a read of 1 row, raw socket": runs["read"]}), data)


@contextmanager
def line(ours: Server) -> Iterator[socket.socket]:
    """A connection that sends at once."""
    with closing(socket.create_connection((HOST, ours.port), timeout=CALL_S)) as kept:
        kept.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield kept


def exchange(kept: socket.socket, request: bytes) -> bytes:
    """The body of the reply, which must be a 200. Raises WrongReply."""
    kept.sendall(request)
    got = b""
    while b"\r\n\r\n" not in got:
        got += _more(kept)
    head, _, body = got.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += _more(kept)
    if not head.startswith(b"HTTP/1.1 200"):
        raise WrongReply(f"{head.splitlines()[0]!r} {body[:200]!r}")
    return body


def _more(kept: socket.socket) -> bytes:
    part = kept.recv(1 << 20)
    if not part:
        raise WrongReply("the service closed the connection")
    return part


def _body() -> dict[str, Any]:
    return {"fields": list(FIELDS), "include": PARTS, "compact": True}


class Wrk:
    """Reads of the whole partition by wrk; each call is one round."""

    def __init__(self, ours: Server, place: Place, at_once: int = AT_ONCE) -> None:
        self.ours, self.place, self.at_once = ours, place, at_once
        self.body: Path = place.scratch / "read.json"
        self.body.write_text(json.dumps(_body()))

    def __call__(self) -> list[float]:
        seconds = self.place.scale.seconds
        done = wrk.load("post", self.ours.url, seconds, self.at_once, PATH, self.body, 200, '"is_ready":true')
        return [done["requests"] / done["seconds"]]


CASE = Case("reads", "a read by a bare socket against /healthz", run)
