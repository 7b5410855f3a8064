"""The client against the real service: a small step of training, and the answers that only a service can give.

Every test uses partitions of its own, so the service may be shared and may hold others.
"""

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from batchmeta import (
    Array,
    AsyncClient,
    BatchMeta,
    ClearClosed,
    ClearNotFound,
    Client,
    Const,
    DtypeConflict,
    DuplicateKeys,
    FieldNotFound,
    IdempotencyMismatch,
    InvalidRequest,
    KeyNotFound,
    LeaseLost,
    PartitionCleared,
    PartitionConflict,
    PartitionNotFound,
    PreconditionFailed,
    Retries,
    SampleCleared,
    SampleClearing,
)
from batchmeta.wire import requests

OBJECT = {"kind": "object"}
QUICK = Retries(first_s=0.001)


@pytest.fixture
def client(server_url: str) -> Iterator[Client]:
    with Client(server_url) as client:
        yield client


@pytest.fixture
def name() -> str:
    return f"train@{uuid4().hex}"


def test_the_service_says_who_it_is(client: Client) -> None:
    assert client.ready()
    assert client.server().limits.max_rows == 65_536


def test_a_partition_is_made_listed_and_deleted(client: Client, name: str) -> None:
    fields = {"ids": {"dtype": "int64", "ragged": True}}
    made = client.put_partition(name, expected_samples=4, fields=fields)
    assert (made.state, made.expected_samples, made.num_samples) == ("open", 4, 0)
    assert client.put_partition(name, expected_samples=4, fields=fields) == made
    with pytest.raises(PartitionConflict):
        client.put_partition(name, expected_samples=5)
    assert client.partition(name) == made
    assert [line.partition_id for line in client.partitions(name)] == [name]
    old = client.tagged_partition(name)
    client.insert(name, count=2)
    with pytest.raises(PreconditionFailed):
        client.delete_partition(name, if_match=old.etag)
    assert client.delete_partition(name, if_match=client.tagged_partition(name).etag).cleared_samples == 2
    assert client.delete_partition(name).cleared_samples == 0
    with pytest.raises(PartitionCleared):
        client.partition(name)
    with pytest.raises(PartitionNotFound):
        client.partition(name + "-never")


def test_rows_are_inserted_and_found_by_key(client: Client, name: str) -> None:
    metas = [{"n": 0}, {"n": 1}]
    batch = client.insert(name, keys=["b", "a"], custom_meta=metas, group_ids=["g", 7])
    assert batch.created == 2
    assert batch.custom_meta == metas
    again = client.insert(name, keys=["a", "c"], custom_meta=[{"m": 2}, None])
    assert again.created == 1
    assert again.global_indexes[0] == batch.global_indexes[1]
    assert again.custom_meta == [{"n": 1, "m": 2}, {}]
    assert client.lookup_keys(name, batch.global_indexes) == ["b", "a"]
    assert {line.key: line.custom_meta for line in client.keys(name)} == {"a": {"n": 1, "m": 2}, "b": {"n": 0}, "c": {}}
    assert [line.key for line in client.keys(name, prefix="b")] == ["b"]
    groups = client.read(name, keys=["a", "b", "no"], include=["group_ids"])
    assert (groups.group_ids, groups.missing_keys) == (Array([7, "g"]), ("no",))
    with pytest.raises(DuplicateKeys):
        client.insert(name, keys=["x", "x"])


def test_produced_rows_are_ready_and_described(client: Client, name: str) -> None:
    produced = client.produce(
        name,
        {"ids": {"dtype": "int64", "lengths": [3, 5]}, "score": {"dtype": "float32", "shape": []}, "raw": OBJECT},
        keys=["a", "b"],
        create=True,
        backend_meta={"ids": Const("1"), "raw": [{"n_chunks": 3}, None]},
        custom_meta=Const({"status": "success"}),
    )
    assert produced.created == 2
    batch = client.read(name, fields=["ids", "score", "raw", "later"])
    assert batch.is_ready
    assert (batch.fields, batch.missing_fields) == (("ids", "score", "raw"), ("later",))
    assert batch.keys == ["a", "b"]
    assert batch.custom_meta == [{"status": "success"}] * 2
    assert batch.field_schema is not None
    assert batch.backend_meta is not None
    assert [batch.field_schema["ids"].shape_of(row) for row in range(2)] == [(3,), (5,)]
    assert batch.field_schema["score"].shape_of(1) == ()
    assert batch.field_schema["raw"].kind == "object"
    assert batch.backend_meta["ids"] == ["1", "1"]
    assert batch.backend_meta["raw"] == [{"n_chunks": 3}, None]
    assert BatchMeta.from_dict(batch.to_dict()) == batch
    compact = client.read(name, fields=["ids"], compact=True).field_schema
    assert compact is not None
    assert compact["ids"].lengths == [3, 5]
    with pytest.raises(DtypeConflict):
        client.produce(name, {"ids": {"dtype": "float32", "lengths": [1]}}, keys=["a"])


def test_a_schema_that_was_read_can_be_written_for_another_partition(client: Client, name: str) -> None:
    schema: dict[str, dict[str, Any]] = {
        "ids": {"dtype": "int64", "shapes": [[2, 3], [4, 3]]},
        "one": {"dtype": "uint8", "shape": [1]},
    }
    client.produce(name, schema, keys=["a", "b"], create=True)
    read = client.read(name, fields=["ids", "one"])
    assert read.field_schema is not None
    client.produce(name + "-copy", read.field_schema, keys=["a", "b"], create=True)
    copy = client.read(name + "-copy", fields=["ids", "one"])
    assert copy.field_schema is not None
    assert copy.field_schema["ids"].shapes == [[2, 3], [4, 3]]
    assert copy.field_schema["one"] == read.field_schema["one"]


def test_metas_are_patched(client: Client, name: str) -> None:
    rows = client.produce(name, {"x": OBJECT}, keys=["a", "b"], create=True, custom_meta=Const({"n": 1, "m": 2}))
    client.patch_custom_meta(name, [{"n": None}, None], keys=["a", "b"])
    assert client.read(name).custom_meta == [{"m": 2}, {"n": 1, "m": 2}]
    patched = client.patch_backend_meta(name, {"x": ["here", "there"]}, global_indexes=rows.global_indexes)
    assert patched.global_indexes == rows.global_indexes
    found = client.read_backend_meta(name, fields=["x", "no"], keys=["b", "gone"])
    assert found.backend_meta["x"] == ["there"]
    assert (found.missing_keys, found.missing_fields) == (("gone",), ("no",))


def test_status_is_told_per_cell(client: Client, name: str) -> None:
    client.produce(name, {"x": OBJECT, "y": OBJECT}, keys=["a"], create=True)
    client.produce(name, {"x": OBJECT}, keys=["b"], create=True)
    assert client.production(name, ["y", "x"]).production_status == [[1, 1], [0, 1]]
    batch = client.read(name, fields=["x", "y"], include=["field_status"])
    assert batch.production_status == [1, 0]
    assert batch.select_fields(["x"]).production_status == [1, 1]
    with pytest.raises(FieldNotFound):
        client.production(name, ["typo"])
    with pytest.raises(KeyNotFound):
        client.read(name, keys=["gone"], strict=True)


def test_deleted_rows_are_gone(client: Client, name: str) -> None:
    rows = client.insert(name, count=3).global_indexes.to_list()
    assert client.delete(name, global_indexes=rows[:1]).cleared == 1
    assert client.delete(name, global_indexes=rows[:1]).cleared == 0
    held = client.read(name, global_indexes=rows)
    assert held.global_indexes == rows
    assert held.custom_meta == [None, {}, {}]
    with pytest.raises(SampleCleared) as raised:
        client.produce(name, {"x": OBJECT}, global_indexes=rows)
    assert raised.value.global_indexes == (rows[0],)
    assert raised.value.request_id


def test_a_task_is_handed_each_row_once(client: Client, name: str) -> None:
    client.put_partition(name, expected_samples=3)
    none = client.claim(name, "actor", ["x"], 2)
    assert not none
    assert (none.ready, none.wanted, none.done) == (0, 2, False)
    assert none.blocking
    rows = client.produce(name, {"x": OBJECT}, keys=["a", "b", "c"], create=True).global_indexes
    first = client.claim(name, "actor", ["x"], 2)
    assert first
    assert first.batch.is_ready
    assert first.batch.global_indexes == rows[:2]
    assert client.claim(name, "actor", ["x"], 2, min_batch_size=1).batch.global_indexes == rows[2:]
    told = client.consumption(name, "actor")
    assert (told.consumption_status, told.consumed, told.total, told.done) == ([1, 1, 1], 3, 3, True)
    assert client.claim(name, "actor", ["x"], 2, wait_s=60).done
    assert client.consumption(name, "other", counts_only=True).consumed == 0
    assert client.reset(name, "actor").reset == 3
    assert client.claim(name, "actor", ["x"], 3).batch.size == 3
    assert client.reset(name).reset == 3


def test_groups_are_handed_out_whole(client: Client, name: str) -> None:
    keys = [f"{prompt}_{answer}" for answer in range(2) for prompt in range(2)]
    client.produce(name, {"x": OBJECT}, keys=keys, create=True, group_ids=[0, 1, 0, 1])
    whole = {"name": "grpo_group", "n_samples_per_prompt": 2}
    batch = client.claim(name, "actor", ["x"], 2, sampler=whole, include=["group_ids", "keys"]).batch
    assert batch.group_ids == [0, 0]
    assert batch.keys == ["0_0", "0_1"]
    with pytest.raises(InvalidRequest):
        client.claim(name, "actor", ["x"], 3, sampler=whole)


def test_where_and_weights_choose_the_rows(client: Client, name: str) -> None:
    metas = [{"version": version, "len": length} for version, length in ((7, 90), (8, 50), (9, 40), (9, 70))]
    client.produce(name, {"x": OBJECT}, keys=list("abcd"), create=True, custom_meta=metas)
    fresh = [{"path": "version", "op": ">=", "value": 8}]
    assert client.explain(name, "actor", ["x"], 9, where=fresh).ready == 3
    budget = {"name": "token_budget", "weight": "len", "budget": 100}
    assert client.claim(name, "actor", ["x"], 9, sampler=budget, where=fresh).batch.keys == ["b", "c"]
    heavy = requests.Sampler(name="priority", weight="len")
    assert client.claim(name, "critic", ["x"], 2, sampler=heavy).batch.keys == ["a", "d"]
    assert [line.key for line in client.keys(name, where=fresh)] == ["b", "c", "d"]
    assert client.delete(name, keys=list("abcd"), where=fresh).cleared == 3
    with pytest.raises(InvalidRequest):
        client.delete(name, keys=["a"], where=[])


@pytest.mark.asyncio
async def test_a_waiting_claim_is_woken_by_the_data(server_url: str, name: str) -> None:
    async with AsyncClient(server_url, timeout=10) as client:
        waiting = asyncio.create_task(client.claim(name, "actor", ["x"], 8, wait_s=30))
        puts = [client.produce(name, {"x": OBJECT}, keys=[f"k{i}"], create=True) for i in range(8)]
        written = await asyncio.gather(*puts)
        claimed = await waiting
    assert claimed
    assert claimed.batch.global_indexes == sorted(row for each in written for row in each.global_indexes)


@pytest.mark.asyncio
async def test_a_claim_can_be_given_up(server_url: str, name: str) -> None:
    async with AsyncClient(server_url) as client:
        waiting = asyncio.create_task(client.claim(name, "actor", ["x"], 1, wait_s=60))
        await client.ready()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert waiting.cancelled()


@pytest.mark.parametrize("wrong", ["a/b", "a\\b", "tab\t", "x" * 201, "ü" * 201])
def test_names_the_service_refuses_are_refused_by_the_service(client: Client, wrong: str) -> None:
    with pytest.raises(InvalidRequest):
        client.put_partition(wrong)


@pytest.mark.parametrize("right", ["ü %2F&?#+;=", "..a", "train@step_12", "日本"])
def test_names_arrive_as_they_are(client: Client, name: str, right: str) -> None:
    partition_id = f"{right} {name}"
    client.insert(partition_id, keys=["k" + right])
    assert client.partition(partition_id).partition_id == partition_id
    assert [line.partition_id for line in client.partitions(partition_id)] == [partition_id]
    assert [line.key for line in client.keys(partition_id, prefix="k" + right)] == ["k" + right]


def test_a_large_read_comes_in_pages_and_as_one_batch(client: Client, name: str) -> None:
    client.insert(name, count=65_536)
    client.insert(name, count=10)
    batch = client.read(name, include=[])
    assert batch.size == 65_546
    assert len(set(batch.global_indexes)) == batch.size


@pytest.mark.asyncio
async def test_a_lease_from_the_claim_to_its_end(server_url: str) -> None:
    async with AsyncClient(server_url) as client:
        await client.produce("leased", {"n": {"dtype": "int64", "shape": []}}, keys=["a", "b", "c"], create=True)
        claim = await client.claim("leased", "t", ["n"], 3, lease_s=60, worker="w-leased")
        assert claim.claim_id is not None
        assert claim.token is not None
        assert claim.attempts == [1, 1, 1]
        first, second, third = claim.batch.global_indexes
        assert [held.claim_id for held in await client.open_claims(worker="w-leased")] == [claim.claim_id]
        assert (await client.extend(claim.claim_id, claim.token, 600)).open == 3
        done = await client.ack(claim.claim_id, claim.token, accept=[first], release=[second], reject={third: "empty"})
        assert (done.accepted, done.released, done.rejected, done.open) == (1, 1, 1, 0)
        assert [(row.key, row.reason) for row in await client.dead("leased", "t")] == [("c", "empty")]
        assert (await client.seen_claim(claim.claim_id)).open == 0
        with pytest.raises(LeaseLost) as lost:
            await client.ack(claim.claim_id, claim.token, accept=[second])
        assert lost.value.global_indexes == (second,)
        assert (await client.seal("leased")).state == "sealed"
        assert (await client.explain("leased", "t", ["n"], 8)).ready == 1
        assert (await client.claim("leased", "t", ["n"], 8)).batch.keys == ["b"]


class Losing(httpx.AsyncBaseTransport):
    """Brings every call to the service and loses the first `lost` answers on the way back."""

    def __init__(self, lost: int) -> None:
        self.lost, self.sent = lost, 0
        self._way = httpx.AsyncHTTPTransport(trust_env=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.sent += 1
        answer = await self._way.handle_async_request(request)
        if self.sent <= self.lost:
            await answer.aread()
            await answer.aclose()
            raise httpx.ReadError("lost on the way back")
        return answer

    async def aclose(self) -> None:
        await self._way.aclose()


@pytest.mark.asyncio
async def test_a_claim_whose_answer_was_lost_gets_its_batch_and_an_insert_its_rows(server_url: str, name: str) -> None:
    async with AsyncClient(server_url, transport=Losing(2), retries=QUICK) as client:
        rows = await client.insert(name, count=3)
        assert (rows.created, rows.size) == (3, 3)
        await client.produce(name, {"x": OBJECT}, global_indexes=rows.global_indexes)
    async with AsyncClient(server_url, transport=Losing(2), retries=QUICK) as client:
        claim = await client.claim(name, "actor", ["x"], 2, wait_s=30)
        assert claim.batch.global_indexes == rows.global_indexes[:2]
        assert (await client.consumption(name, "actor", counts_only=True)).consumed == 2
        assert (await client.partition(name)).num_samples == 3


@pytest.mark.asyncio
async def test_two_workers_with_one_key_get_one_batch(server_url: str, name: str) -> None:
    async with AsyncClient(server_url) as one, AsyncClient(server_url) as other:
        await one.produce(name, {"x": OBJECT}, keys=["a", "b"], create=True)
        first = await one.claim(name, "actor", ["x"], 1, idempotency_key=f"{name} step 1")
        assert await other.claim(name, "actor", ["x"], 1, idempotency_key=f"{name} step 1") == first
        assert (await other.claim(name, "actor", ["x"], 1, idempotency_key=f"{name} step 2")).batch.size == 1
        with pytest.raises(IdempotencyMismatch):
            await other.claim(name, "actor", ["x"], 2, idempotency_key=f"{name} step 1")


def test_samples_go_after_their_bytes(client: Client, name: str) -> None:
    kept = {"x": {"dtype": "int64", "shape": []}}
    client.produce(name, kept, keys=["a", "b", "c"], create=True, backend_meta={"x": ["1", "2", "3"]})
    clear = client.plan_clear(name, keys=["a", "b"], tombstone=True)
    assert list(zip(clear.keys, clear.fields["x"].backend_meta, strict=True)) == [("a", "1"), ("b", "2")]
    assert client.read(name).keys == ["c"]
    with pytest.raises(SampleClearing) as refused:
        client.produce(name, kept, global_indexes=clear.global_indexes)
    assert (refused.value.retryable, list(refused.value.global_indexes)) == (True, clear.global_indexes)
    assert clear.clear_id in [line.clear_id for line in client.clears("pending")]
    assert client.commit_clear(clear.clear_id).cleared == 2
    assert client.seen_clear(clear.clear_id).state == "committed"
    with pytest.raises(ClearClosed):
        client.abort_clear(clear.clear_id)
    with pytest.raises(ClearNotFound):
        client.commit_clear("nobody")
    late = client.produce(name, kept, keys=["a", "c"], create=True, on_cleared="skip")
    assert (late.skipped, late.created, len(late.global_indexes)) == (("a",), 0, 1)
    back = client.plan_clear(name, key_prefix="c")
    assert client.abort_clear(back.clear_id).state == "aborted"
    assert client.read(name, key_prefix="c").keys == ["c"]
