"""Ten thousand waiting calls of one client cost only memory, and the next one is refused with a Retry-After.

Each has a connection of its own, as real clients have.
"""

import resource
import selectors
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import DEADLINE_S, ServerProcess

from .service import Api, answer, connect, refused
from .test_cases import put
from .test_waiting import waiting_claim

MANY, PUTS = 10_000, 300
# 20 KB when this was written, connection, request and all.
MOST_BYTES_EACH = 40_000


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < MANY + 500:
        pytest.skip(f"a process may have no more than {hard} open files here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, MANY + 500), hard))
    server = ServerProcess("--journal", "memory:", "--max-waiting-per-client", str(MANY))
    yield server
    assert server.stop() == 0
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def resident(server: ServerProcess) -> int:
    """Bytes of memory of the server's process."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


class Crowd:
    """Claims that wait, each on a connection of its own."""

    def __init__(self, api: Api, stack: ExitStack) -> None:
        self.api = api
        self.lines = [stack.enter_context(connect(api.url)) for _ in range(MANY)]
        self.watch = stack.enter_context(selectors.DefaultSelector())
        for line in self.lines:
            self.watch.register(line, selectors.EVENT_READ)
            line.sendall(waiting_claim(api))

    def answered(self) -> list[socket.socket]:
        return [key.fileobj for key, _ in self.watch.select(0) if isinstance(key.fileobj, socket.socket)]

    def until_all_wait(self) -> None:
        """One more is turned away: so all are there. Whoever came while the question was asked asks again."""
        deadline = time.monotonic() + DEADLINE_S
        while self.api.claim("n", wait_s=0.01).status_code != 429:
            assert time.monotonic() < deadline
            for line in self.answered():
                refused(answer(line), 429, "too-many-waiting")
                line.sendall(waiting_claim(self.api))


def test_ten_thousand_who_wait_cost_memory_alone(server: ServerProcess) -> None:
    api, other = Api(server.url), Api(server.url)
    with api.http, other.http, ExitStack() as stack:
        before = resident(server)
        crowd = Crowd(api, stack)
        crowd.until_all_wait()
        each = (resident(server) - before) / MANY
        problem = api.claim("n", wait_s=60)
        refused(problem, 429, "too-many-waiting", "waiting")
        assert int(problem.headers["retry-after"]) >= 1
        another_client_may_wait(api)
        put(other, PUTS)
        assert crowd.answered() == []
        api.produce(["a"], "n")
        (line,) = first_answered(crowd)
        assert answer(line).json()["batch"]["keys"] == ["a"]
        assert api.claim("n", wait_s=0.01).status_code == 200, "there is room for one again"
        api.ok("DELETE", "")
        assert crowd_is_sent_away(crowd) == MANY - 1
    assert each < MOST_BYTES_EACH, each


def another_client_may_wait(api: Api) -> None:
    with socket.create_connection(connect_address(api), timeout=30, source_address=("127.0.0.2", 0)) as line:
        line.sendall(waiting_claim(api, 0.01))
        assert answer(line).json()["claim"] is None


def connect_address(api: Api) -> tuple[str, int]:
    url = api.http.base_url
    return url.host, url.port or 0


def first_answered(crowd: Crowd) -> list[socket.socket]:
    """Those who were answered once at least one was and another call has come through."""
    assert crowd.watch.select(DEADLINE_S)
    for _ in range(3):
        crowd.api.ok("GET", "tasks/t/consumption")
    return crowd.answered()


def crowd_is_sent_away(crowd: Crowd) -> int:
    """How many are told that their partition is gone."""
    count, deadline = 0, time.monotonic() + DEADLINE_S
    while count < MANY - 1 and time.monotonic() < deadline:
        for line in crowd.answered():
            assert line.recv(65_536).startswith(b"HTTP/1.1 410 ")
            crowd.watch.unregister(line)
            count += 1
    return count
