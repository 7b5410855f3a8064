"""Rows with a time, revoked cells, and following keys: the calls of both clients against the real service."""

import asyncio
from collections.abc import Iterator
from uuid import uuid4

import pytest

from batchmeta import AsyncClient, Client, Compacted, FieldNotFound, KeyChanges, PartitionCleared
from tests.client.service import Scripted, client, ok

SCALAR = {"dtype": "int64", "shape": []}


@pytest.fixture
def blocking(server_url: str) -> Iterator[Client]:
    with Client(server_url) as blocking:
        yield blocking


@pytest.fixture
def name() -> str:
    return f"train@{uuid4().hex}"


def told(changes: KeyChanges) -> tuple[list[str], list[str]]:
    return [line.key for line in changes.keys], changes.removed


def test_rows_with_a_time_disappear_and_a_follower_is_told(blocking: Client, name: str) -> None:
    start = blocking.insert(name, keys=["a", "b"], custom_meta=[{"n": 1}, None], ttl_s=600).revision
    known = blocking.key_changes(name, 0)
    assert (told(known), known.revision) == ((["a", "b"], []), start)
    assert known.keys[0].custom_meta == {"n": 1}
    patched = blocking.patch_custom_meta(name, [{"n": 2}], keys=["a"], ttl_s=0.05)
    assert told(blocking.key_changes(name, start, prefix="a")) in [(["a"], []), ([], ["a"])]
    gone = blocking.key_changes(name, patched.revision, wait_s=60)
    assert told(gone) == ([], ["a"])
    assert told(blocking.key_changes(name, gone.revision)) == ([], [])
    big = [{"path": "n", "op": ">", "value": 1}]
    blocking.insert(name, keys=["c", "d"], custom_meta=[{"n": 2}, {"n": 1}])
    assert told(blocking.key_changes(name, gone.revision, where=big)) == (["c"], [])
    assert [line.key for line in blocking.keys(name, where=big)] == ["c"]
    blocking.delete_partition(name)
    with pytest.raises(PartitionCleared):
        blocking.key_changes(name, gone.revision)
    blocking.insert(name, keys=["a"])
    with pytest.raises(Compacted):
        blocking.key_changes(name, gone.revision)


def test_revoked_cells_are_not_ready(blocking: Client, name: str) -> None:
    blocking.produce(name, {"n": SCALAR}, keys=["a", "b"], create=True)
    assert blocking.revoke(name, ["n"], keys=["a", "nobody"]).revoked == 1
    assert blocking.read(name, fields=["n"]).production_status == [0, 1]
    rows = blocking.read(name).global_indexes
    assert blocking.revoke(name, ["n"], global_indexes=rows).revoked == 1
    with pytest.raises(FieldNotFound):
        blocking.revoke(name, ["m"], keys=["a"])


@pytest.mark.asyncio
async def test_a_waiting_follower_is_woken(server_url: str, name: str) -> None:
    async with AsyncClient(server_url) as aio:
        start = (await aio.insert(name, keys=["a"])).revision
        waiting = asyncio.create_task(aio.key_changes(name, start, wait_s=60))
        await aio.insert(name, keys=["b"], ttl_s=600)
        assert told(await waiting) == (["b"], [])


def page(keys: list[str], removed: list[str], revision: int, cursor: str | None) -> object:
    lines = [{"key": key, "global_index": i, "custom_meta": {}, "revision": revision} for i, key in enumerate(keys)]
    return {"partition_id": "p", "revision": revision, "keys": lines, "removed": removed, "next_cursor": cursor}


@pytest.mark.asyncio
async def test_pages_are_joined_and_the_later_one_is_right() -> None:
    script = Scripted(
        ok(page(["a", "b"], ["c", "d"], 5, "r5.1")),
        ok(page(["c", "e"], ["a"], 7, "r7.2")),
        ok(page(["b"], [], 9, None)),
    )
    async with client(script) as aio:
        where = [{"path": "n", "op": "exists"}]
        found = await aio.key_changes("p", 3, prefix="x", where=where, wait_s=2.5)
    assert (told(found), found.revision) == ((["c", "e", "b"], ["d", "a"]), 9)
    queries = [dict(request.url.params) for request in script.requests]
    asked = {"prefix": "x", "where": '[{"path":"n","op":"exists"}]', "since_revision": "3"}
    assert queries == [asked | {"wait_s": "2.5"}, *(asked | {"cursor": cursor} for cursor in ("r5.1", "r7.2"))]
