"""The ledger of a worker that was killed at any point: its entries, and the fate of an ack without an answer."""

from pathlib import Path
from typing import Any

import pytest

from batchmeta import AsyncClient
from crew.ledger import Entry, Ledger, read, settle_doubts
from tests.client.leasing import Leasing, Naps, lost


def entry(number: int) -> Entry:
    return Entry("t", "p", f"c{number}", f"token {number}", [4, 5], [1, 2])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "worker.jsonl"


def written(path: Path) -> None:
    """One acked, one void, two in doubt; by two lives."""
    first, second = Ledger(path), Ledger(path)
    for number in (1, 2, 3):
        first.ready(entry(number))
    first.acked("c1")
    second.void("c2")
    second.ready(entry(4))
    first.close()
    second.close()


def test_what_is_written_by_any_life_is_in_the_books(path: Path) -> None:
    assert read(path).acked == []
    written(path)
    books = read(path)
    assert (books.acked, books.void, books.in_doubt) == ([entry(1)], [entry(2)], [entry(3), entry(4)])


@pytest.mark.asyncio
async def test_an_ack_in_doubt_is_said_again_with_its_token_and_entered(path: Path) -> None:
    written(path)
    service = Leasing()
    service.refuse = lambda verb, body: lost(4, 5) if body["token"] == "token 3" else None
    async with Naps().client(service) as client:
        assert await settle_doubts(client, path) == [entry(4)]
        assert await settle_doubts(client, path) == []
    assert service.said == [("ack", {"token": f"token {number}", "accept": [4, 5]}) for number in (3, 4)]
    books = read(path)
    assert (books.acked, books.void, books.in_doubt) == ([entry(1), entry(4)], [entry(2), entry(3)], [])


@pytest.mark.asyncio
async def test_on_the_service_an_ack_said_again_counts_once_and_one_after_the_lease_does_not(
    server_url: str, path: Path
) -> None:
    async with AsyncClient(server_url) as client:
        await client.produce("ledger", {"x": {"kind": "object"}}, keys=["a", "b"], create=True)
        claims = [await client.claim("ledger", "t", ["x"], 1, lease_s=60, worker="w") for _ in range(2)]
        ledger = Ledger(path)
        for claim in claims:
            ledger.ready(entry_of(claim))
        await client.ack(str(claims[0].claim_id), str(claims[0].token))
        await client.release_worker("w")
        await settle_doubts(client, path)
        ledger.close()
        counts = await client.consumption("ledger", "t", counts_only=True)
        await client.delete_partition("ledger")
    books = read(path)
    assert ([each.claim_id for each in books.acked], [each.claim_id for each in books.void]) == (
        [claims[0].claim_id],
        [claims[1].claim_id],
    )
    assert (counts.consumed, counts.leased) == (1, 0)


def entry_of(claim: Any) -> Entry:
    return Entry("t", "ledger", claim.claim_id, claim.token, list(claim.batch.global_indexes), list(claim.attempts))
