"""One client in several event loops: each has its own connections, and they end with their loop."""

import asyncio
import gc
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
import uvloop

from batchmeta import AsyncClient, Client
from tests.client.service import Scripted, loopback, ok, partition
from tests.conftest import DEADLINE_S

RUNS = 1000 if os.environ.get("TEST_LONG") else 60
Run = Callable[..., None]
RUNNERS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


@pytest.fixture(params=["fast", "httpx"], autouse=True)
def _transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "httpx":
        monkeypatch.setattr("batchmeta.transports.find_spec", lambda name: None)


def _descriptors() -> int:
    gc.collect()  # what other tests left is not ours; what we left would be a ResourceWarning
    return len(list(Path("/proc/self/fd").iterdir()))


async def _calls(client: AsyncClient) -> None:
    assert await client.ready()
    assert await client.ready()


@RUNNERS
def test_runs_in_a_row_share_a_client_and_leave_nothing_open(run: Run, server_url: str) -> None:
    client = AsyncClient(server_url)
    run(_calls(client))
    before = _descriptors()
    for _ in range(RUNS):
        run(_calls(client))
    assert _descriptors() == before


def test_each_run_has_one_connection_of_its_own() -> None:
    async def two(client: AsyncClient) -> None:
        await client.partition("a")
        await client.partition("b")

    with loopback() as server:
        client = AsyncClient(server.url)
        for _ in range(3):
            asyncio.run(two(client))
    assert server.ports[::2] == server.ports[1::2]
    assert len(server.ports) == 6


def test_loops_that_run_at_once_in_threads_share_a_client() -> None:
    turns = threading.Barrier(4)

    async def work(client: AsyncClient, number: int) -> list[str]:
        await client.partition("warm")
        await asyncio.to_thread(turns.wait)
        return [(await client.partition(f"{number}-{i}")).partition_id for i in range(20)]

    with loopback() as server, ThreadPoolExecutor(4) as pool:
        client = AsyncClient(server.url)
        found = list(pool.map(lambda number: asyncio.run(work(client, number)), range(4)))
        asyncio.run(client.aclose())
    assert len(set(server.ports)) == 4
    assert found == [[f"/v1/partitions/{number}-{i}" for i in range(20)] for number in range(4)]


def test_what_a_loop_closed_by_hand_left_open_is_closed_by_the_next(server_url: str) -> None:
    client = AsyncClient(server_url)
    asyncio.run(_calls(client))
    before, counts = _descriptors(), []
    for _ in range(4):
        loop = asyncio.new_event_loop()
        loop.run_until_complete(_calls(client))
        loop.close()
        counts.append(_descriptors())
    assert counts == [before + 1] * 4
    asyncio.run(client.aclose())
    assert _descriptors() == before


def test_closing_in_one_loop_closes_the_others_in_theirs(server_url: str) -> None:
    there, closed = threading.Event(), threading.Event()

    async def elsewhere(client: AsyncClient) -> int:
        await _calls(client)
        before = _descriptors()
        there.set()
        await asyncio.to_thread(closed.wait)
        await _turns()
        with pytest.raises(RuntimeError, match="closed"):
            await client.ready()
        return before - _descriptors()

    client = AsyncClient(server_url)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(asyncio.run, elsewhere(client))
        there.wait()
        asyncio.run(client.aclose())
        closed.set()
        assert other.result(DEADLINE_S) == 1


@pytest.mark.asyncio
async def test_a_client_that_nobody_holds_any_more_closes_its_connections(server_url: str) -> None:
    first = AsyncClient(server_url)
    await _calls(first)
    before = _descriptors()
    client = AsyncClient(server_url)
    await _calls(client)
    assert _descriptors() == before + 1
    del client
    gc.collect()
    await _turns()
    assert _descriptors() == before
    await first.aclose()


async def _turns() -> None:
    """As many as it takes to close a connection."""
    for _ in range(50):
        await asyncio.sleep(0)


def test_a_transport_of_the_callers_is_the_one_of_all_loops_and_is_closed_with_the_client() -> None:
    class Mine(httpx.MockTransport):
        closed = 0

        async def aclose(self) -> None:
            self.closed += 1

    mine = Mine(Scripted(ok(partition())))
    client = AsyncClient(transport=mine)
    for _ in range(3):
        assert asyncio.run(client.partition("p")).partition_id == "p"
    assert mine.closed == 0
    asyncio.run(client.aclose())
    assert mine.closed == 1


@pytest.mark.asyncio
async def test_a_notebook_uses_both_clients_in_its_loop(server_url: str) -> None:
    client = AsyncClient(server_url)
    with Client(server_url) as blocking:
        for _ in range(3):
            await _calls(client)
            assert blocking.ready()
            await asyncio.to_thread(asyncio.run, _calls(client))
    await client.aclose()
