"""More connections than a real server may have open files: those that it has go on being served, and it never says that
a change is made which is not. Once others have left, new ones are served again.
"""

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from tests.app.service import connect, exchange, head
from tests.conftest import ServerProcess

from .servers import PATH, ended, failing, insert, kept, running, until

SPARE, MORE = 10, 30
SEGMENT_BYTES = 50_000
LOOK = head("GET", "/healthz")


def open_files(server: ServerProcess) -> int:
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))


@contextmanager
def crowded(server: ServerProcess) -> Iterator[list[socket.socket]]:
    """The server may open few more files than it has, and more than that many connections come."""
    most = open_files(server) + SPARE
    _, hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (most, hard))
    with ExitStack() as stack:
        crowd = [stack.enter_context(connect(server.url)) for _ in range(SPARE + MORE)]
        for line in crowd:
            line.sendall(LOOK)
        until(lambda: open_files(server) >= most)
        yield crowd


def write(http: httpx.Client, number: int) -> tuple[str, int] | None:
    """A change of some size; None where it was not acknowledged."""
    body = {"keys": [f"k{number}"], "custom_meta": [{"text": "x" * 5_000}]}
    try:
        reply = http.post(f"{PATH}/samples", json=body)
    except httpx.TransportError:
        return None
    return (f"k{number}", reply.json()["global_indexes"][0]) if reply.status_code == 201 else None


def test_without_descriptors_those_who_are_connected_are_served(tmp_path: Path) -> None:
    with (
        running(failing(tmp_path, TEST_SEGMENT_BYTES=str(SEGMENT_BYTES))) as server,
        httpx.Client(base_url=server.url, timeout=30) as http,
    ):
        made = {"first": insert(http, "first").json()["global_indexes"][0]}
        with crowded(server) as crowd:
            got = sorted(line.recv(65_536)[:12] for line in crowd)
            assert got == [b""] * MORE + [b"HTTP/1.1 200"] * SPARE, "the rest is told at once that nobody will answer"
            for number in range(20):
                assert insert(http, f"crowded{number}").status_code == 201
                made[f"crowded{number}"] = number + 1
        until(lambda: exchange_or_none(server.url) == 200)
        with crowded(server):
            # Sooner or later a segment is full, and the next one is a file.
            for number in range(1000):
                one = write(http, number)
                if one is None:
                    break
                made |= [one]
            status, said = ended(server)
    assert (status, "Too many open files" in said[-1]) == (1, True), said
    assert not any("Traceback" in line for line in said)
    assert kept(tmp_path) == made


def exchange_or_none(url: str) -> int | None:
    """The status of a look over a new connection; None where it was closed."""
    try:
        return exchange(url, LOOK).status_code
    except (OSError, AssertionError):
        return None
