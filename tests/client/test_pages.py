"""Pages are followed to the end, joined, and mean the same by what they say."""

import pytest

from batchmeta import BatchMeta
from tests.client.service import Scripted, batch, client, ok

HEAD = {"partition_id": "p", "revision": 7}


@pytest.mark.asyncio
async def test_read_joins_its_pages() -> None:
    script = Scripted(
        ok(batch([0, 1], custom_meta={"const": {}}, missing_keys=["z"], next_cursor="one")),
        ok(batch([2], custom_meta=[{"a": 1}], keys=["k"], missing_keys=["y"], revision=9, next_cursor="two")),
        ok(batch([3], custom_meta=[{}], missing_keys=["z"], next_cursor=None)),
    )
    meta = await client(script).read("p", include=["custom_meta"])
    assert meta.global_indexes == [0, 1, 2, 3]
    assert meta.custom_meta == [{}, {}, {"a": 1}, {}]
    assert meta.keys == [None, None, "k", None]
    assert (meta.missing_keys, meta.revision) == (("z", "y"), 7)
    assert [body.get("cursor") for body in script.bodies] == [None, "one", "two"]
    assert all(body["include"] == ["custom_meta"] for body in script.bodies)


@pytest.mark.asyncio
async def test_a_field_that_turns_up_between_pages_changes_nothing_of_what_ready_means() -> None:
    script = Scripted(ok(batch([0], next_cursor="one")), ok(batch([1])))
    await client(script).read("p")
    assert [body.get("fields") for body in script.bodies] == [None, ["x"]]


@pytest.mark.asyncio
async def test_a_field_forgotten_between_pages_is_left_out() -> None:
    script = Scripted(
        ok(batch([0], fields=["x", "y"], production_status=[0], is_ready=False, next_cursor="one")),
        ok(batch([1], fields=["y"], missing_fields=["x"])),
    )
    meta = await client(script).read("p")
    assert (meta.fields, meta.missing_fields) == (("y",), ("x",))
    assert meta.production_status == [0, 1]


@pytest.mark.asyncio
async def test_one_page_keeps_what_the_call_said() -> None:
    meta = await client(Scripted(ok(batch([0], missing_keys=["z"], next_cursor=None)))).read("p", keys=["a", "z"])
    assert meta == BatchMeta.from_dict(batch([0], missing_keys=["z"]))


@pytest.mark.asyncio
async def test_backend_meta_joins_its_pages() -> None:
    page = {**HEAD, "missing_keys": [], "missing_fields": ["w"]}
    script = Scripted(
        ok({**page, "global_indexes": [0, 1], "backend_meta": {"x": {"const": "1"}}, "next_cursor": "one"}),
        ok({**page, "global_indexes": [2], "backend_meta": {"x": [None]}, "next_cursor": None}),
    )
    found = await client(script).read_backend_meta("p")
    assert found.global_indexes == [0, 1, 2]
    assert found.backend_meta["x"] == ["1", "1", None]
    assert found.missing_fields == ("w",)
    assert [body.get("fields") for body in script.bodies] == [None, ["x"]]


@pytest.mark.asyncio
async def test_listings_join_their_pages() -> None:
    line = {"state": "open", "num_samples": 0, "num_fields": 0, "revision": 1, "created_at": "2026-01-01T00:00:00Z"}
    script = Scripted(
        ok({"partitions": [{"partition_id": "a", **line}], "next_cursor": "n"}),
        ok({"partitions": [{"partition_id": "b", **line}], "next_cursor": None}),
    )
    assert [each.partition_id for each in await client(script).partitions()] == ["a", "b"]
    assert script.requests[1].url.params["cursor"] == "n"

    key = {"key": "k", "global_index": 3, "custom_meta": {"a": 1}, "revision": 2}
    script = Scripted(ok({**HEAD, "keys": [key], "next_cursor": "n"}), ok({**HEAD, "keys": [key], "next_cursor": None}))
    lines = await client(script).keys("p", prefix="k")
    assert [(each.key, each.global_index, each.custom_meta) for each in lines] == [("k", 3, {"a": 1})] * 2
    assert [request.url.params["prefix"] for request in script.requests] == ["k", "k"]


@pytest.mark.asyncio
async def test_statuses_join_their_pages() -> None:
    page = {**HEAD, "fields": ["x", "y"]}
    script = Scripted(
        ok({**page, "global_indexes": [0], "production_status": [[1, 0]], "next_cursor": "n"}),
        ok({**page, "global_indexes": [1], "production_status": [[1, 1]], "next_cursor": None}),
    )
    production = await client(script).production("p", ["x", "y"])
    assert (production.global_indexes, production.production_status) == ([0, 1], [[1, 0], [1, 1]])

    counts = {**HEAD, "consumed": 1, "leased": 0, "dead": 0, "total": 2, "done": False}
    script = Scripted(
        ok({**counts, "global_indexes": [0], "consumption_status": [1], "next_cursor": "n"}),
        ok({**counts, "global_indexes": [1], "consumption_status": [0], "next_cursor": None}),
    )
    consumption = await client(script).consumption("p", "t")
    assert (consumption.global_indexes, consumption.consumption_status, consumption.consumed) == ([0, 1], [1, 0], 1)
    counted = await client(Scripted(ok(counts))).consumption("p", "t", counts_only=True)
    assert (counted.global_indexes, counted.consumption_status) == (None, None)
