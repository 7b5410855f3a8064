"""`ttl_s` of insert and of patch as the contract has it, over HTTP: rows that get no field in time disappear.

No test measures time: 0.05 s is a deadline that comes, a day is one that does not; a wait of 60 s that is answered was
woken.
"""

import asyncio
from pathlib import Path

import pytest

from tests.conftest import ServerProcess

from .service import Api, refused
from .test_waiting import client, parked, settled

DAY = 86_400


def until_past(api: Api, revision: int) -> int:
    """Wait for the partition's next change; its samples then."""
    found = api.ok("GET", f"?revision={revision}&wait_s=60")
    assert found["revision"] > revision
    samples: int = found["num_samples"]
    return samples


def test_a_row_that_gets_no_field_in_time_disappears_and_wakes_who_waits(api: Api) -> None:
    api.ok("PUT", "", {"expected_samples": 2})
    inserted = api.ok("POST", "samples", {"keys": ["a", "b"], "ttl_s": 0.05})
    assert until_past(api, inserted["revision"]) == 0
    assert api.ok("GET", "keys")["keys"] == []
    late = {"global_indexes": inserted["global_indexes"][:1], "field_schema": {}}
    refused(api.send("POST", "production", late), 410, "sample-cleared")
    again = api.insert("a")
    assert again[0] > inserted["global_indexes"][1]
    assert api.ok("GET", "tasks/t/consumption?counts_only=true")["total"] == 2


def test_the_first_produced_field_ends_it(api: Api) -> None:
    first = api.ok("POST", "samples", {"keys": ["a", "b"], "ttl_s": DAY})["revision"]
    api.produce(["a"], "n")
    revision = api.ok("PATCH", "custom-meta", {"keys": ["a", "b"], "custom_meta": {"const": None}, "ttl_s": 0.05})
    assert revision["revision"] == first + 2
    assert until_past(api, first + 2) == 1
    assert [line["key"] for line in api.ok("GET", "keys")["keys"]] == ["a"]


def test_insert_and_patch_renew_it(api: Api) -> None:
    api.insert("a", "b", "c", ttl_s=30)
    api.insert("a", ttl_s=DAY)
    before = api.ok("GET", "")["revision"]
    api.ok("PATCH", "custom-meta", {"keys": ["b"], "custom_meta": [{"n": 1}], "ttl_s": DAY})
    api.ok("PATCH", "custom-meta", {"keys": ["c"], "custom_meta": [{"n": 1}], "ttl_s": 0.05})
    assert until_past(api, before + 2) == 2
    assert [line["key"] for line in api.ok("GET", "keys")["keys"]] == ["a", "b"]


def test_renewing_what_has_a_field_is_no_change(api: Api) -> None:
    api.produce(["a"], "n")
    before = api.dump()
    api.insert("a", ttl_s=0.05)
    api.ok("PATCH", "custom-meta", {"keys": ["a"], "custom_meta": [{}], "ttl_s": 0.05})
    assert api.dump() == before


def test_a_full_partition_has_room_again(api: Api) -> None:
    api.ok("PUT", "", {"max_samples": 1})
    revision = api.ok("POST", "samples", {"count": 1, "ttl_s": 0.05})["revision"]
    until_past(api, revision)
    assert api.ok("POST", "samples", {"count": 1})["created"] == 1


@pytest.mark.asyncio
async def test_the_last_rows_of_a_sealed_partition_go_out_when_the_missing_one_expires(api: Api) -> None:
    api.produce(["a"], "n")
    api.insert("b", ttl_s=DAY)
    api.ok("POST", "seal")
    async with client(api.url) as http:
        claim = await parked(http, api.path, size=8)
        await settled(http, api.path, claim)
        api.ok("PATCH", "custom-meta", {"keys": ["b"], "custom_meta": [None], "ttl_s": 0.05})
        reply = await asyncio.wait_for(claim, 30)
    assert reply.json()["batch"]["keys"] == ["a"]
    assert api.claim("n").json()["done"] is True


def test_after_a_restart_it_ends_all_the_same(tmp_path: Path) -> None:
    journal = f"file://{tmp_path}/journal"
    server = ServerProcess("--journal", journal)
    api = Api(server.url)
    with api.http:
        api.insert("a", ttl_s=DAY)
        revision = api.ok("POST", "samples", {"keys": ["b"], "ttl_s": 1})["revision"]
    assert server.kill() != 0
    server = ServerProcess("--journal", journal)
    again = Api(server.url)
    again.name, again.path = api.name, api.path
    with again.http:
        assert until_past(again, revision) == 1
        assert [line["key"] for line in again.ok("GET", "keys")["keys"]] == ["a"]
    assert server.stop() == 0
