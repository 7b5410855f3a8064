"""Clients in loops, threads and forks behind a relay that cuts, delays and answers in the server's place.

Every call is made once, nothing hangs, and nothing is raised but what the client promises. The server's own account
tells. TEST_SEED: another plan of faults; TEST_LONG=1: many more rounds.
"""

import asyncio
import json
import os
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from batchmeta import AsyncClient, Client, Retries
from tests.client.relay import FAULTS, Relay, relay
from tests.conftest import DEADLINE_S, ServerProcess

ROUNDS = 100 if os.environ.get("TEST_LONG") == "1" else 8
SEED = int(os.environ.get("TEST_SEED", "7"))
WORKERS = 4
ROWS = 3
CHANGES = 3  # of one round
X = {"x": {"dtype": "int64", "shape": []}}


async def _at_once(seconds: float) -> None:
    await asyncio.sleep(0)


RETRIES = Retries(sleep=_at_once, within_s=DEADLINE_S)


class Account:
    """What the server counts for one partition, asked directly and before the work begins."""

    def __init__(self, url: str) -> None:
        self.url, self.name = url, f"relayed@{uuid4().hex}"
        with Client(url) as direct:
            self._before = direct.server().revision

    def settle(self, claimed: list[list[int]], changes: int) -> None:
        """Every row was made once and claimed once, and nothing else changed."""
        rows = [row for batch in claimed for row in batch]
        with Client(self.url) as direct:
            assert direct.partition(self.name).num_samples == len(rows)
            assert direct.consumption(self.name, "t", counts_only=True).consumed == len(rows)
            assert sorted(rows) == list(direct.read(self.name).global_indexes)
            assert direct.server().revision - self._before == changes


@pytest.fixture(params=["fast", "httpx"], ids=lambda name: f"{name}-seed={SEED}", autouse=True)
def _transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "httpx":
        monkeypatch.setattr("batchmeta.transports.find_spec", lambda name: None)


@pytest.fixture(scope="module")
def own_url() -> Iterator[str]:
    """A server of these tests alone: where others left leases, those end some time, and each end is a change."""
    server = ServerProcess("--journal", "memory:")
    yield server.url
    assert server.stop() == 0


@pytest.fixture
def account(own_url: str) -> Account:
    return Account(own_url)


@pytest.fixture
def way(account: Account) -> Iterator[Relay]:
    with relay(account.url, SEED) as found:
        yield found
    assert found.seen.total() > found.seen["none"] > 0


async def _round(client: AsyncClient, name: str) -> list[int]:
    """Insert, produce, look, claim: three changes. A claim waits until there is a batch."""
    made = await client.insert(name, count=ROWS)
    assert (made.created, made.size) == (ROWS, ROWS)
    waiting = asyncio.create_task(client.claim(name, "t", ["x"], ROWS, wait_s=60))
    await client.produce(name, X, global_indexes=made.global_indexes)
    assert (await client.read(name, global_indexes=made.global_indexes)).size == ROWS
    return list((await waiting).batch.global_indexes)


async def _rounds(client: AsyncClient, name: str) -> list[list[int]]:
    async with asyncio.timeout(DEADLINE_S):
        return [await _round(client, name) for _ in range(ROUNDS)]


def _blocking_rounds(client: Client, name: str) -> list[list[int]]:
    claimed = []
    for _ in range(ROUNDS):
        made = client.insert(name, count=ROWS)
        assert made.created == ROWS
        client.produce(name, X, global_indexes=made.global_indexes)
        claimed.append(list(client.claim(name, "t", ["x"], ROWS, wait_s=60).batch.global_indexes))
    return claimed


@pytest.mark.asyncio
async def test_many_workers_of_one_loop(account: Account, way: Relay) -> None:
    async with AsyncClient(way.url, retries=RETRIES) as client:
        done = await asyncio.gather(*(_rounds(client, account.name) for _ in range(WORKERS)))
    account.settle([batch for each in done for batch in each], WORKERS * ROUNDS * CHANGES)


@pytest.mark.parametrize("loops", [2, 4])
def test_loops_in_threads(account: Account, way: Relay, loops: int) -> None:
    client = AsyncClient(way.url, retries=RETRIES)
    with ThreadPoolExecutor(loops) as pool:
        done = list(pool.map(lambda _: asyncio.run(_rounds(client, account.name)), range(loops)))
    asyncio.run(client.aclose())
    account.settle([batch for each in done for batch in each], loops * ROUNDS * CHANGES)


def test_runs_in_a_row(account: Account, way: Relay) -> None:
    client = AsyncClient(way.url, retries=RETRIES)
    done = [asyncio.run(_rounds(client, account.name)) for _ in range(WORKERS)]
    account.settle([batch for each in done for batch in each], WORKERS * ROUNDS * CHANGES)


def test_threads_that_share_a_blocking_client(account: Account, way: Relay) -> None:
    with Client(way.url, retries=RETRIES) as client, ThreadPoolExecutor(WORKERS) as pool:
        done = list(pool.map(lambda _: _blocking_rounds(client, account.name), range(WORKERS)))
    account.settle([batch for each in done for batch in each], WORKERS * ROUNDS * CHANGES)


@pytest.mark.asyncio
async def test_both_clients_in_a_notebooks_loop(account: Account, way: Relay) -> None:
    client = AsyncClient(way.url, retries=RETRIES)
    with Client(way.url, retries=RETRIES) as blocking:
        done = await _rounds(client, account.name)
        done += _blocking_rounds(blocking, account.name)
        done += await _rounds(client, account.name)
    await client.aclose()
    account.settle(done, 3 * ROUNDS * CHANGES)


def _in_child(work: Callable[[], list[list[int]]]) -> tuple[int, int]:
    """A forked child's pid, and where its batches can be read."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid:
        os.close(theirs)
        return pid, ours
    try:
        os.write(theirs, json.dumps(work()).encode())
    except BaseException:  # noqa: BLE001 - whatever it was, the child must not run on as a second pytest
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def test_forks(account: Account, way: Relay) -> None:
    blocking, client = Client(way.url, retries=RETRIES), AsyncClient(way.url, retries=RETRIES)
    done = asyncio.run(_rounds(client, account.name)) + _blocking_rounds(blocking, account.name)
    children = [
        _in_child(lambda: asyncio.run(_rounds(client, account.name))),
        _in_child(lambda: _blocking_rounds(blocking, account.name)),
    ]
    done += _blocking_rounds(blocking, account.name) + asyncio.run(_rounds(client, account.name))
    for pid, pipe in children:
        with os.fdopen(pipe) as batches:
            done += json.load(batches)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    blocking.close()
    account.settle(done, 6 * ROUNDS * CHANGES)


@pytest.mark.asyncio
async def test_loops_over_claims(account: Account, way: Relay) -> None:
    total = WORKERS * ROUNDS * ROWS

    async def worker(client: AsyncClient) -> list[list[int]]:
        found = []
        async for lease in client.claims(account.name, "t", ["x"], ROWS, wait_s=60):
            async with lease as batch:
                found.append(list(batch.global_indexes))
        return found

    async with AsyncClient(way.url, retries=RETRIES) as client, asyncio.timeout(DEADLINE_S):
        workers = [asyncio.create_task(worker(client)) for _ in range(WORKERS)]
        for number in range(WORKERS * ROUNDS):
            keys = [f"{number}-{row}" for row in range(ROWS)]
            assert (await client.produce(account.name, X, keys=keys, create=True)).created == ROWS
        await client.seal(account.name)
        done = [batch for each in await asyncio.gather(*workers) for batch in each]
    assert sum(map(len, done)) == total
    # One change for each production, claim and account of a lease, and the seal.
    account.settle(done, WORKERS * ROUNDS + 2 * len(done) + 1)


def test_the_plan_is_the_seeds_and_has_all_faults() -> None:
    first, again = (Relay("http://127.0.0.1:1", SEED) for _ in range(2))
    plans = [[each.next_fault() for _ in range(200)] for each in (first, again)]
    assert plans[0] == plans[1]
    assert set(FAULTS) < set(plans[0])
