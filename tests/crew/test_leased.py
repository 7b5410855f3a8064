"""Work under a lease that is asked for by hand, and clears that a killed process left behind; on a real service."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from batchmeta import AsyncClient, BatchMeta, Claim
from crew.clearing import finish_pending
from crew.desk import Desk, Sample, Want, write
from crew.leased import Badge, settle, take
from crew.ledger import Ledger, read
from crew.storage import MissingBytes, StorageAddress, connect

WANT = Want("by-hand", ("x",), 1, 2, None, ({"path": "version", "op": ">=", "value": 3},))


@pytest_asyncio.fixture
async def desk(server_url: str, memory_address: StorageAddress) -> AsyncIterator[Desk]:
    """With three samples in storage and service, of which two are new enough."""
    async with AsyncClient(server_url) as client:
        desk = Desk(client, connect(memory_address), lambda *_: None)
        samples = [Sample(f"k{version}", "g", {"x": {"v": version}}, {"version": version}) for version in (2, 3, 4)]
        await write(desk, desk.tally("put"), "by-hand", samples)
        yield desk
        await client.delete_partition("by-hand")


async def taken(desk: Desk, badge: Badge) -> Claim:
    return await take(badge, desk, "t", WANT, 0.0, 60)


@pytest.mark.asyncio
async def test_a_batch_is_worked_on_and_then_consumed(desk: Desk, tmp_path: Path) -> None:
    badge, worked = Badge("w", tmp_path), list[str]()

    async def work(batch: BatchMeta) -> None:
        worked.extend(map(str, batch.keys or ()))

    claim = await taken(desk, badge)
    assert await settle(desk, Ledger(badge.file), "t", claim, work)
    assert worked == ["k3", "k4"]
    assert [entry.rows for entry in read(badge.file).acked] == [list(claim.batch.global_indexes)]
    counts = await desk.client.consumption("by-hand", "t", counts_only=True)
    assert (counts.consumed, counts.leased, counts.total) == (2, 0, 3)


@pytest.mark.asyncio
async def test_work_whose_lease_has_ended_is_void_and_the_rows_go_out_again(desk: Desk, tmp_path: Path) -> None:
    badge = Badge("w", tmp_path)

    async def work(_: BatchMeta) -> None:
        await desk.client.release_worker("w")

    claim = await taken(desk, badge)
    assert not await settle(desk, Ledger(badge.file), "t", claim, work)
    books = read(badge.file)
    assert ([entry.claim_id for entry in books.void], books.acked) == ([claim.claim_id], [])
    assert (await taken(desk, badge)).batch.keys == ["k3", "k4"]


@pytest.mark.asyncio
async def test_a_clear_that_was_left_behind_is_finished(desk: Desk) -> None:
    planned = await desk.client.plan_clear("by-hand", keys=["k2", "k4"])
    names = [f"{index}@x" for index in planned.global_indexes]
    assert len(desk.storage.get(names)) == 2
    await finish_pending(desk)
    with pytest.raises(MissingBytes) as missing:
        desk.storage.get(names)
    assert missing.value.names == tuple(names)
    assert [line.key for line in await desk.client.keys("by-hand")] == ["k3"]
    assert await desk.client.clears("pending") == []
