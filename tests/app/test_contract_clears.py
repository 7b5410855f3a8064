"""Two-step clears as the contract has them, over HTTP; and the selectors that come with them."""

import asyncio
from typing import Any

import pytest

from .service import Api, refused
from .test_contract_leases import ack, counts, lease
from .test_waiting import client, parked, settled


def plan(api: Api, **wanted: Any) -> Any:
    """A clear that was planned."""
    reply = api.send("POST", "clears", wanted)
    assert reply.status_code == 201, reply.text
    return reply.json()


def close(api: Api, clear: Any, how: str) -> Any:
    return api.send("POST", f"/v1/clears/{clear['clear_id']}/{how}")


def test_plan_delete_the_bytes_commit(api: Api) -> None:
    a, b = api.produce(["a", "b"], "n", backend_meta={"n": ["at a", "at b"]})["global_indexes"]
    api.produce(["a"], "only_a")
    clear = plan(api, keys=["b", "a", "nobody"])
    assert clear == {
        "partition_id": api.name,
        "revision": clear["revision"],
        "clear_id": clear["clear_id"],
        "state": "pending",
        "plan": {
            "global_indexes": [a, b],
            "keys": ["a", "b"],
            "fields": {
                "n": {"written": {"const": 1}, "backend_meta": ["at a", "at b"]},
                "only_a": {"written": [1, 0], "backend_meta": {"const": None}},
            },
        },
        "skipped_clearing": [],
    }
    assert api.ok("GET", "")["num_samples"] == 0
    seen = api.ok("GET", f"/v1/clears/{clear['clear_id']}")
    assert seen["plan"] == clear["plan"]
    assert (seen["state"], seen["count"], seen["partition_id"]) == ("pending", 2, api.name)
    done = close(api, clear, "commit").json()
    assert done | {"revision": 0} == {
        "partition_id": api.name,
        "revision": 0,
        "clear_id": clear["clear_id"],
        "state": "committed",
        "cleared": 2,
    }
    assert close(api, clear, "commit").json() == done
    seen = api.ok("GET", f"/v1/clears/{clear['clear_id']}")
    assert ("plan" in seen, seen["state"], seen["count"]) == (False, "committed", 2)
    refused(close(api, clear, "abort"), 409, "clear-closed", "committed")


def test_an_abort_brings_the_samples_back_as_they_were(filled: Api) -> None:
    def seen(api: Api) -> Any:
        parts = ["batch-meta?include=keys,group_ids,field_schema,custom_meta,backend_meta,field_status", "keys"]
        found = [api.ok("GET", part) for part in [*parts, "tasks/t/consumption"]]
        revisions = [[line.pop("revision") for line in one.get("keys", ()) if isinstance(line, dict)] for one in found]
        assert all(each <= found[0]["revision"] for one in revisions for each in one)
        return [one | {"revision": 0} for one in found]

    before = seen(filled)
    clear = plan(filled, all=True, expand=True)
    assert clear["plan"]["fields"]["ids"]["written"] == [1, 1]
    assert filled.ok("GET", "batch-meta")["size"] == 0
    aborted = close(filled, clear, "abort").json()
    assert (aborted["state"], aborted["clear_id"]) == ("aborted", clear["clear_id"])
    assert seen(filled) == before
    assert close(filled, clear, "abort").json() == aborted
    refused(close(filled, clear, "commit"), 409, "clear-closed", "aborted")


def test_a_late_produce_is_refused_and_nothing_is_changed(api: Api) -> None:
    a, b = api.produce(["a", "b"], "n")["global_indexes"]
    clear = plan(api, keys=["a"])
    late = {"global_indexes": [b, a], "field_schema": {"late": {"dtype": "int64", "shape": []}}}
    before = api.dump()
    problem = refused(api.send("POST", "production", late), 409, "sample-clearing", "again")
    assert problem["global_indexes"] == [a]
    refused(api.send("POST", "production", late | {"on_cleared": "skip"}), 409, "sample-clearing")
    assert refused(api.send("POST", "samples", {"keys": ["c", "a"]}), 409, "sample-clearing")["keys"] == ["a"]
    patch = {"keys": ["a"], "custom_meta": [{"n": 1}]}
    refused(api.send("PATCH", "custom-meta", patch), 409, "sample-clearing")
    refused(api.send("PATCH", "backend-meta", {"keys": ["a"], "backend_meta": {"n": [1]}}), 409, "sample-clearing")
    assert api.dump() == before
    close(api, clear, "commit")
    before = api.dump()
    assert refused(api.send("POST", "production", late), 410, "sample-cleared")["global_indexes"] == [a]
    assert api.dump() == before
    done = api.ok("POST", "production", late | {"on_cleared": "skip"})
    assert (done["global_indexes"], done["skipped"]) == ([b], [a])
    assert "skipped" not in api.ok("POST", "production", {**late, "global_indexes": [b], "on_cleared": "refuse"})


def test_every_sample_that_is_clearing_is_named(api: Api) -> None:
    rows = api.insert(*(f"k{i}" for i in range(30)))
    plan(api, global_indexes=rows)
    problem = refused(
        api.send("PATCH", "custom-meta", {"global_indexes": rows, "custom_meta": {"const": {}}}), 409, "sample-clearing"
    )
    assert problem["global_indexes"] == rows


def test_a_tombstone_keeps_the_key_until_the_partition_is_deleted(api: Api) -> None:
    api.insert("a", "b")
    close(api, plan(api, keys=["a"], tombstone=True), "commit")
    assert refused(api.send("POST", "samples", {"keys": ["a"]}), 410, "sample-cleared")["keys"] == ["a"]
    schema = {"keys": ["a", "b"], "create": True, "field_schema": {"n": {"dtype": "int64", "shape": []}}}
    refused(api.send("POST", "production", schema), 410, "sample-cleared")
    done = api.ok("POST", "production", schema | {"on_cleared": "skip"})
    assert (len(done["global_indexes"]), done["created"], done["skipped"]) == (1, 0, ["a"])
    api.ok("DELETE", "")
    api.insert("a")


def test_what_another_clear_has_is_skipped_by_clears_and_deletes(api: Api) -> None:
    a, b, c = api.insert("a", "b", "c")
    plan(api, key_prefix="a")
    second = plan(api, global_indexes=[a, b])
    assert (second["plan"]["global_indexes"], second["skipped_clearing"]) == ([b], [a])
    deleted = api.ok("POST", "samples/delete", {"keys": ["a", "b", "c", "d"]})
    assert (deleted["cleared"], deleted["skipped_clearing"]) == (1, [a, b])
    assert api.ok("DELETE", "")["cleared_samples"] == 2
    assert api.ok("GET", f"/v1/clears/{second['clear_id']}")["state"] == "committed"
    assert c not in deleted["skipped_clearing"]


def test_where_is_asked_of_the_selected_samples(api: Api) -> None:
    metas = [{"version": version} for version in (6, 7, 8)]
    old = [{"path": "version", "op": "<", "value": 8}]
    a, b, c = api.insert("a1", "a2", "b1", custom_meta=metas)
    assert plan(api, key_prefix="a", where=[{"path": "version", "op": ">", "value": 6}])["plan"]["keys"] == ["a2"]
    clear = plan(api, all=True, where=old)
    assert (clear["plan"]["global_indexes"], clear["skipped_clearing"]) == ([a], [b])
    assert api.ok("GET", "batch-meta")["global_indexes"] == [c]


def test_reads_and_deletes_by_group_and_by_prefix(api: Api) -> None:
    a, b, c = api.insert("a1", "a2", "b1", group_ids=[7, "7", 7])
    assert api.ok("POST", "batch-meta", {"group_ids": [7]})["global_indexes"] == [a, c]
    assert api.ok("POST", "batch-meta", {"key_prefix": "a", "limit": 1})["next_cursor"] is not None
    assert api.ok("POST", "backend-meta", {"group_ids": ["7", 8]})["global_indexes"] == [b]
    assert api.ok("POST", "backend-meta", {"key_prefix": "b"})["global_indexes"] == [c]
    assert api.ok("POST", "samples/delete", {"group_ids": [7]})["cleared"] == 2
    assert api.ok("POST", "samples/delete", {"key_prefix": "a"})["cleared"] == 1


def test_clears_are_listed_a_page_at_a_time(api: Api) -> None:
    rows = api.insert("a", "b", "c")
    clears = [plan(api, global_indexes=[row]) for row in rows]
    close(api, clears[0], "commit")
    close(api, clears[1], "abort")
    listed: list[Any] = []
    cursor = ""
    while cursor is not None:
        page = api.ok("GET", f"/v1/clears?limit=2{cursor and f'&cursor={cursor}'}")
        assert len(page["clears"]) <= 2
        listed += [line for line in page["clears"] if line["partition_id"] == api.name]
        cursor = page["next_cursor"]
    assert [(line["clear_id"], line["state"], line["count"]) for line in listed] == [
        (clear["clear_id"], state, 1) for clear, state in zip(clears, ("committed", "aborted", "pending"), strict=True)
    ]
    assert all(0 <= line["age_s"] < 60 for line in listed)
    pending = api.ok("GET", "/v1/clears?state=pending&limit=10000")["clears"]
    assert [line["clear_id"] for line in pending if line["partition_id"] == api.name] == [clears[2]["clear_id"]]


def test_a_plan_leaves_a_lease_alone_and_a_commit_ends_it(api: Api) -> None:
    api.produce(["a", "b"], "n")
    held = lease(api)
    clear = plan(api, all=True)
    assert counts(api) == [0, 0, 0, 0]
    assert ack(api, held, accept=held["rows"][:1]).status_code == 200
    blocking = api.claim("n").json()["blocking"]
    assert {"reason": "clearing", "count": 1, "global_indexes": held["rows"][1:]} in blocking
    close(api, clear, "commit")
    assert refused(ack(api, held, accept=held["rows"][1:]), 409, "lease-lost")["global_indexes"] == held["rows"][1:]
    assert counts(api) == [1, 0, 0, 1]


@pytest.mark.asyncio
async def test_a_waiting_claim_gets_what_an_abort_brings_back(api: Api) -> None:
    api.produce(["a"], "n")
    clear = plan(api, keys=["a"])
    async with client(api.url) as http:
        claim = await parked(http, api.path)
        await settled(http, api.path, claim)
        close(api, clear, "abort")
        reply = await asyncio.wait_for(claim, 30)
    assert reply.json()["batch"]["keys"] == ["a"]


def test_a_clear_sent_again_with_its_key_is_the_same_clear(api: Api) -> None:
    api.insert("a", "b")
    headers = {"Idempotency-Key": f"{api.name}-clear"}
    first, again = (api.send("POST", "clears", {"keys": ["a"]}, headers=headers) for _ in range(2))
    assert (first.status_code, first.content) == (again.status_code, again.content)
    assert again.headers["idempotency-replayed"] == "true"


def test_a_clear_of_a_partition_that_is_not_there(api: Api) -> None:
    refused(api.send("POST", "clears", {"all": True}), 404, "partition-not-found")
    api.insert("a")
    api.ok("DELETE", "")
    refused(api.send("POST", "clears", {"all": True}), 410, "partition-cleared")
