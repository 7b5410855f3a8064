"""Sealing, changed settings, explain and `if_revision` as the contract has them, over HTTP."""

import asyncio

import pytest

from .service import Api, refused
from .test_waiting import client, parked, settled


def test_a_sealed_partition_takes_no_more_samples(api: Api) -> None:
    api.produce(["a"], "n")
    sealed = api.ok("POST", "seal")
    assert (sealed["state"], sealed["expected_samples"], sealed["num_samples"]) == ("sealed", 1, 1)
    before = api.dump()
    refused(api.send("POST", "samples", {"count": 1}), 409, "partition-sealed", "sealed")
    refused(api.send("POST", "samples", {"keys": ["a", "b"]}), 409, "partition-sealed")
    body = {"keys": ["b"], "create": True, "field_schema": {}}
    refused(api.send("POST", "production", body), 409, "partition-sealed")
    assert api.dump() == before
    assert api.ok("POST", "samples", {"keys": ["a"]})["created"] == 0
    api.produce(["a"], "m")


def test_sealing_again_changes_nothing(api: Api) -> None:
    api.produce(["a"], "n")
    assert api.ok("POST", "seal") == api.ok("POST", "seal")
    lines = api.ok("GET", f"/v1/partitions?prefix={api.name}")["partitions"]
    assert [line["state"] for line in lines if line["partition_id"] == api.name] == ["sealed"]


def test_a_partition_that_is_not_there_cannot_be_sealed_or_changed(api: Api) -> None:
    refused(api.send("POST", "seal"), 404, "partition-not-found")
    refused(api.send("PATCH", "", {"max_samples": 1}), 404, "partition-not-found")
    api.insert("a")
    api.ok("DELETE", "")
    refused(api.send("POST", "seal"), 410, "partition-cleared")
    refused(api.send("PATCH", "", {"max_samples": 1}), 410, "partition-cleared")


def test_a_sealed_partition_is_done_once_all_is_consumed(api: Api) -> None:
    api.produce(["a", "b"], "n")
    assert api.claim("n", size=2).json()["claim"] is not None
    assert api.claim("n").json()["done"] is False
    api.ok("POST", "seal")
    assert api.claim("n").json()["done"] is True
    assert api.ok("GET", "tasks/other/consumption?counts_only=true")["done"] is False


def test_the_last_rows_of_a_sealed_partition_go_out_at_once_whatever_the_minimum(api: Api) -> None:
    api.produce(["a", "b", "c"], "n")
    assert api.claim("n", size=8).json()["claim"] is None
    api.ok("POST", "seal")
    assert api.claim("n", size=8, min_batch_size=8).json()["batch"]["keys"] == ["a", "b", "c"]


def test_they_wait_until_all_are_ready(api: Api) -> None:
    api.produce(["a"], "n")
    api.insert("b")
    api.ok("POST", "seal")
    assert api.claim("n", size=8).json()["claim"] is None
    api.produce(["b"], "n")
    assert api.claim("n", size=8).json()["batch"]["size"] == 2


def test_only_whole_groups_are_last_rows(api: Api) -> None:
    api.produce(["a", "b", "c"], "n", group_ids=["g", "g", "h"])
    api.ok("POST", "seal")
    pairs = {"sampler": {"name": "grpo_group", "n_samples_per_prompt": 2}}
    assert api.claim("n", size=8, **pairs).json()["batch"]["keys"] == ["a", "b"]
    left = api.claim("n", size=8, **pairs).json()
    assert (left["claim"], left["done"], left["stranded"], left["ready"]) == (None, True, 1, 1)


@pytest.mark.asyncio
async def test_a_waiting_claim_gets_the_last_rows_when_the_partition_is_sealed(api: Api) -> None:
    api.produce(["a"], "n")
    async with client(api.url) as http:
        claim = await parked(http, api.path, size=8)
        await settled(http, api.path, claim)
        api.ok("POST", "seal")
        reply = await asyncio.wait_for(claim, 30)
    assert (reply.status_code, reply.json()["batch"]["keys"]) == (201, ["a"])


@pytest.mark.asyncio
async def test_a_waiting_claim_ends_when_sealing_leaves_it_nothing(api: Api) -> None:
    api.produce(["a"], "n")
    api.claim("n")
    async with client(api.url) as http:
        claim = await parked(http, api.path)
        await settled(http, api.path, claim)
        api.ok("POST", "seal")
        reply = await asyncio.wait_for(claim, 30)
    assert (reply.status_code, reply.json()["done"]) == (200, True)


def test_patch_changes_what_is_named(api: Api) -> None:
    api.ok("PUT", "", {"expected_samples": 8, "max_samples": 1})
    api.insert("a")
    refused(api.send("POST", "samples", {"keys": ["b"]}), 429, "too-many-samples")
    changed = api.ok("PATCH", "", {"max_samples": 2, "max_attempts": 9})
    assert [changed[name] for name in ("expected_samples", "max_samples", "max_attempts")] == [8, 2, 9]
    api.insert("b")
    assert api.ok("PATCH", "", {}) == api.ok("PATCH", "", {"max_samples": 2})
    assert api.send("PUT", "", {"expected_samples": 8, "max_samples": 1}).status_code == 200
    assert api.ok("GET", "")["max_samples"] == 2


def test_what_a_sealed_partition_expects_is_settled(api: Api) -> None:
    api.insert("a", "b")
    api.ok("POST", "seal")
    refused(api.send("PATCH", "", {"expected_samples": 9}), 409, "partition-sealed", "expected_samples")
    assert api.ok("PATCH", "", {"expected_samples": 2, "max_attempts": 1})["max_attempts"] == 1
    assert api.ok("PUT", "", {"expected_samples": 50})["expected_samples"] == 2


def test_explain_says_what_a_claim_would_find_and_changes_nothing(api: Api) -> None:
    api.ok("PUT", "", {"expected_samples": 5})
    indexes = api.produce(["a", "b"], "n")["global_indexes"]
    api.insert("c")
    before = api.dump()
    found = api.ok("POST", "tasks/new/explain", {"fields": ["n"], "batch_size": 4})
    assert [found[name] for name in ("ready", "wanted", "total", "consumed", "done")] == [2, 4, 5, 0, False]
    assert found["blocking"][0] | {"global_indexes": []} == {
        "reason": "not-produced",
        "count": 1,
        "field": "n",
        "global_indexes": [],
    }
    assert found["blocking"][0]["global_indexes"] == [indexes[1] + 1]
    assert api.dump() == before
    assert api.ok("GET", "")["tasks"] == {}


def test_explain_of_a_partition_that_is_not_there(api: Api) -> None:
    found = api.ok("POST", "tasks/t/explain", {"fields": ["n"], "batch_size": 1})
    assert (found["ready"], [line["reason"] for line in found["blocking"]]) == (0, ["partition-absent"])
    refused(api.send("POST", "tasks/t/explain", {"fields": [], "batch_size": 1}), 422, "invalid-request")


def test_a_patch_of_custom_meta_may_depend_on_the_revision_it_was_decided_at(api: Api) -> None:
    indexes = api.insert("a", "b")
    seen = api.ok("GET", "keys")["revision"]
    api.ok("PATCH", "custom-meta", {"keys": ["b"], "custom_meta": [{"v": 1}]})
    late = {"keys": ["a", "b"], "custom_meta": {"const": {"v": 2}}, "if_revision": seen}
    before = api.dump()
    problem = refused(api.send("PATCH", "custom-meta", late), 412, "precondition-failed")
    assert problem["global_indexes"] == [indexes[1]]
    assert api.dump() == before
    api.ok("PATCH", "custom-meta", late | {"keys": ["a"]})
    api.ok("PATCH", "custom-meta", late | {"if_revision": api.ok("GET", "/v1/server")["revision"]})


@pytest.mark.asyncio
async def test_a_call_may_wait_for_a_partition_to_change(api: Api) -> None:
    api.insert("a")
    seen = api.ok("GET", "")["revision"]
    async with client(api.url) as http:
        waiting = asyncio.create_task(http.get(f"{api.path}?revision={seen}&wait_s=60"))
        await settled(http, api.path, waiting)
        api.insert("b")
        reply = await asyncio.wait_for(waiting, 30)
    assert (reply.status_code, reply.json()["revision"], reply.json()["num_samples"]) == (200, seen + 1, 2)
    assert api.ok("GET", f"?revision={seen}&wait_s=60")["revision"] == seen + 1
    assert api.ok("GET", f"?revision={seen + 1}&wait_s=0.01")["revision"] == seen + 1


@pytest.mark.asyncio
async def test_a_partition_that_is_deleted_ends_the_wait_for_its_change(api: Api) -> None:
    api.insert("a")
    async with client(api.url) as http:
        waiting = asyncio.create_task(http.get(f"{api.path}?revision={2**62}&wait_s=60"))
        await settled(http, api.path, waiting)
        api.ok("DELETE", "")
        refused(await asyncio.wait_for(waiting, 30), 410, "partition-cleared")


def test_what_is_not_there_or_half_asked_is_not_waited_for(api: Api) -> None:
    refused(api.send("GET", "?revision=0&wait_s=60"), 404, "partition-not-found")
    api.insert("a")
    refused(api.send("GET", "?wait_s=1"), 422, "invalid-request", "revision")
