"""`claims()` on the real service: in both clients, over a fork, a restart, and among workers that fail."""

import asyncio
import os
import traceback
from collections import Counter
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from batchmeta import AsyncClient, Client, Lease, Retries, StrandedWarning
from tests.conftest import DEADLINE_S, ServerProcess

OBJECT = {"kind": "object"}


class BodyFailed(Exception):
    pass


@pytest.fixture
def name() -> str:
    return f"loop@{uuid4().hex}"


def fill(client: Client, name: str, count: int = 8) -> list[int]:
    """A sealed partition of ready rows; their indexes."""
    keys = [f"k{i}" for i in range(count)]
    rows = client.produce(name, {"x": OBJECT}, keys=keys, create=True).global_indexes
    client.seal(name)
    return rows


@pytest.mark.asyncio
async def test_of_workers_of_which_some_fail_each_row_is_accepted_once(server_url: str, name: str) -> None:
    with Client(server_url) as client:
        rows = fill(client, name, 40)
        client.patch_partition(name, max_attempts=100)
        done: Counter[int] = Counter()
        failures = iter(range(1, 1000))

        async def work(worker: AsyncClient, number: int) -> None:
            async for lease in worker.claims(name, "t", ["x"], 4, worker=f"w{number}"):
                async with lease as batch:
                    await worker.ready()
                    if next(failures) % 3 == 0:
                        raise BodyFailed
                done.update(batch.global_indexes)

        async def restarted(worker: AsyncClient, number: int) -> None:
            while True:
                try:
                    return await work(worker, number)
                except BodyFailed:
                    continue

        async with AsyncClient(server_url) as worker:
            await asyncio.gather(*(restarted(worker, number) for number in range(3)))
        counts = client.consumption(name, "t", counts_only=True)
    assert done == dict.fromkeys(rows, 1)
    assert (counts.consumed, counts.leased, counts.dead, counts.done) == (40, 0, 0, True)
    assert next(failures) > 3


@pytest.mark.asyncio
async def test_who_has_nothing_to_do_waits_for_what_others_may_let_go(server_url: str, name: str) -> None:
    with Client(server_url) as client:
        rows = fill(client, name, 2)
        async with AsyncClient(server_url) as worker:
            first = await anext(worker.claims(name, "t", ["x"], 2, worker="slow"))
            other = asyncio.create_task(consumed(worker, name))
            await worker.ready()
            assert not other.done()
            async with first:
                await first.ack(release=rows[1:])
            assert await other == rows[1:]
        assert client.consumption(name, "t", counts_only=True).consumed == 2


async def consumed(client: AsyncClient, name: str, task: str = "t", size: int = 1) -> list[int]:
    rows: list[int] = []
    async for lease in client.claims(name, task, ["x"], size):
        async with lease as batch:
            rows += batch.global_indexes
    return rows


def test_a_body_may_last_longer_than_its_lease(server_url: str, name: str) -> None:
    with Client(server_url) as client:
        fill(client, name)
        for lease in client.claims(name, "t", ["x"], 8, lease_s=1.0):
            with lease:
                assert lease.claim.claim_id is not None
                while (seen := client.seen_claim(lease.claim.claim_id)).age_s < 2.0:
                    assert seen.open == 8
                assert not lease.lost
        assert client.consumption(name, "t", counts_only=True).consumed == 8


def test_the_blocking_loop_accepts_releases_and_ends(server_url: str, name: str) -> None:
    with Client(server_url) as client:
        rows = fill(client, name)
        with pytest.raises(KeyboardInterrupt):
            interrupted(client, name)
        assert client.consumption(name, "t", counts_only=True).leased == 0
        seen = []
        for lease in client.claims(name, "t", ["x"], 4, worker="w"):
            with lease as batch:
                assert lease.batch is batch
                seen += batch.global_indexes
                lease.ack(reject={batch.global_indexes[0]: "empty"})
        assert seen == rows
        counts = client.consumption(name, "t", counts_only=True)
        assert (counts.consumed, counts.dead, counts.done) == (6, 2, True)


def accepted(lease: Lease) -> list[str | None]:
    with lease as batch:
        return batch.keys.to_list()


def test_a_loop_ends_with_what_it_can_never_get(server_url: str, name: str) -> None:
    with Client(server_url) as client:
        keys = [f"k{i}" for i in range(7)]
        client.produce(name, {"x": OBJECT}, keys=keys, create=True, group_ids=["a"] * 2 + ["b"] * 3 + [None] * 2)
        client.seal(name)
        claims = client.claims(name, "t", ["x"], 4, sampler={"name": "grpo_group", "n_samples_per_prompt": 2})
        reasons = "5 samples are left .*group-incomplete: 2, group-oversized: 3"
        with pytest.warns(StrandedWarning, match=reasons) as told:
            seen = [accepted(lease) for lease in claims]
        assert (seen, claims.stranded) == ([keys[:2]], 5)
        assert [warning.filename for warning in told] == [__file__]
        assert not client.consumption(name, "t", counts_only=True).done


def interrupted(client: Client, name: str) -> None:
    for lease in client.claims(name, "t", ["x"], 4):
        with lease:
            assert client.consumption(name, "t", counts_only=True).leased == 4
            raise KeyboardInterrupt


@pytest.mark.parametrize("error", [None, SystemExit(3)])
def test_a_forked_child_that_leaves_the_body_settles_nothing(
    server_url: str, name: str, error: BaseException | None
) -> None:
    with Client(server_url) as client:
        fill(client, name)
        for lease in client.claims(name, "t", ["x"], 8):
            with lease:
                assert left_in_child(lease, error) == 0
                assert client.consumption(name, "t", counts_only=True).leased == 8
        assert client.consumption(name, "t", counts_only=True).consumed == 8


def left_in_child(lease: Lease, error: BaseException | None) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            lease.__exit__(type(error) if error else None, error, None)
        except BaseException:  # noqa: BLE001 - whatever it was, the child must not run on as a second pytest
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.asyncio
async def test_a_restart_of_the_service_is_only_a_pause(tmp_path: Path, name: str) -> None:
    journal = ("--journal", f"file://{tmp_path}/journal")
    server = ServerProcess(*journal)
    port = httpx.URL(server.url).port or 0
    again: asyncio.Task[ServerProcess] | None = None
    async with AsyncClient(server.url, retries=Retries(within_s=DEADLINE_S, longest_s=0.5)) as client:
        try:
            await client.put_partition(name, expected_samples=4)
            await client.produce(name, {"x": OBJECT}, keys=["a", "b"], create=True)
            # One body is at work when the service dies, and another worker waits for rows that are not there yet.
            waiting = asyncio.create_task(consumed(client, name, task="u", size=4))
            seen: list[int] = []
            async for lease in client.claims(name, "t", ["x"], 2):
                async with lease as batch:
                    if again is None:
                        server.kill()
                        again = asyncio.create_task(asyncio.to_thread(ServerProcess, *journal, port=port))
                seen += batch.global_indexes
                if len(seen) == 2:
                    await client.produce(name, {"x": OBJECT}, keys=["c", "d"], create=True)
            assert len(set(seen)) == 4
            assert await waiting == seen
            assert (await client.consumption(name, "t", counts_only=True)).done
        finally:
            (await again).kill() if again else server.kill()
