"""Many bodies at the limit at once: each is taken whole, one byte more is refused, and the loop answers meanwhile."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.app.service import answer, connect, exchange, post, refused
from tests.conftest import ServerProcess

from .servers import PATH, insert, journal, until

LIMIT, CLIENTS = 1_000_000, 24
DEFAULT, FEW = 64 * 2**20, 2
LOOKS = 3
EVERY_S = 0.02


def body(rows: int, size: int) -> bytes:
    """That many rows with a custom meta of 900 bytes, in exactly `size` bytes of JSON."""
    cell = b'{"text":"%s"}' % (b"x" * 889)
    text = b'{"count":%d,"custom_meta":[%s]}' % (rows, b",".join([cell] * rows))
    return text + b" " * (size - len(text))


class Look(threading.Thread):
    """Asks whether the server is alive, again and again; `answered` counts what it was told."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.url, self.answered, self.over = url, 0, threading.Event()

    def run(self) -> None:
        with httpx.Client(base_url=self.url, timeout=60) as http:
            while not self.over.wait(EVERY_S):
                assert http.get("/healthz").status_code == 200
                self.answered += 1


@contextmanager
def looked_at(url: str) -> Iterator[Look]:
    look = Look(url)
    look.start()
    until(lambda: look.answered)
    try:
        yield look
    finally:
        look.over.set()
        look.join(60)


def at_once(url: str, whole: bytes, count: int) -> list[httpx.Response]:
    """As many clients have sent half of theirs before any sends the rest."""
    with ExitStack() as stack:
        lines = [stack.enter_context(connect(url)) for _ in range(count)]
        for line in lines:
            line.settimeout(120)
            line.sendall(whole[: len(whole) // 2])
        rest = [threading.Thread(target=socket.socket.sendall, args=(line, whole[len(whole) // 2 :])) for line in lines]
        for thread in rest:
            thread.start()
        replies = [answer(line) for line in lines]
        for thread in rest:
            thread.join(60)
    return replies


def held(url: str) -> int:
    with httpx.Client(base_url=url, timeout=60) as http:
        return int(http.get(PATH).json()["num_samples"])


@pytest.mark.parametrize(("limit", "clients", "rows"), [(LIMIT, CLIENTS, 1_000), (DEFAULT, FEW, 65_536)])
def test_bodies_at_the_limit(tmp_path: Path, limit: int, clients: int, rows: int) -> None:
    kind = journal(tmp_path) if limit == LIMIT else ("--journal", "memory:")
    server = ServerProcess(*kind, "--max-body-bytes", str(limit))
    try:
        whole = body(rows, limit)
        assert len(whole) == limit
        with looked_at(server.url) as look:
            before = look.answered
            replies = at_once(server.url, post(f"{PATH}/samples", whole), clients)
            meanwhile = look.answered - before
        assert meanwhile >= LOOKS  # no measure of time, which a busy machine would fail: the loop did not stand
        assert {reply.status_code for reply in replies} == {201}
        assert held(server.url) == clients * rows
        refused(exchange(server.url, post(f"{PATH}/samples", whole + b" ")), 413, "body-too-large", str(limit))
        with httpx.Client(base_url=server.url) as http:
            assert insert(http, "after").status_code == 201
        assert held(server.url) == clients * rows + 1
    finally:
        assert server.stop() == 0
