"""What is written, and in how many calls: data, schema and tags; and what is refused before a byte is written."""

import asyncio
from typing import Any

import torch
import transfer_queue as tq
from tensordict import TensorDict
from tensordict.tensorclass import NonTensorStack

from batchmeta.transferqueue import FieldConflict, LateWrite

from .planes import counted, ours, ours_in_memory, raised, used

ROW = {"x": torch.tensor([1, 2, 3]), "note": "hello"}


def jagged(*lengths: int) -> torch.Tensor:
    return torch.nested.as_nested_tensor([torch.arange(length) for length in lengths], layout=torch.jagged)


def check_a_put_is_two_calls_and_says_all_at_once(url: str, partition: str) -> None:
    with used(ours(url)), counted() as calls:
        meta = tq.kv_put("a", partition, dict(ROW), {"score": 1})
        assert (meta.keys, meta.tags, sorted(meta.fields)) == (["a"], [{"score": 1}], ["note", "x"])
        assert [call.rpartition("/")[2] for call in calls] == ["samples", "production"]
        data = tq.kv_batch_get("a", partition)
        assert data["x"][0].tolist() == [1, 2, 3]
        assert data["note"] == ["hello"]


def check_tags_alone_are_one_call(url: str, partition: str) -> None:
    with used(ours(url)):
        with counted() as calls:
            meta = tq.kv_put("a", partition, None, {"score": 1})
        assert len(calls) == 1
        assert (meta.tags, meta.fields) == ([{"score": 1}], [])
        tq.kv_put("a", partition, dict(ROW), None)
        with counted() as calls:
            meta = tq.kv_put("a", partition, None, {"more": [1]})
        assert len(calls) == 1
        assert (meta.tags, sorted(meta.fields)) == ([{"score": 1, "more": [1]}], ["note", "x"])


def check_writers_of_different_tags_lose_nothing(url: str, partition: str) -> None:
    with used(ours(url)) as client:
        tq.kv_put("a", partition, dict(ROW), {"mine": 1})
        stale = client.kv_retrieve_meta("a", partition)
        tq.kv_put("a", partition, None, {"theirs": 2})
        tq.kv_put("a", partition, {"y": torch.ones(2)}, {"mine": 3})
        assert tq.kv_list(partition) == {partition: {"a": {"mine": 3, "theirs": 2}}}
        assert stale.custom_meta == [{"mine": 1}]


def check_a_batch_with_ragged_and_object_fields(url: str, partition: str) -> None:
    data = TensorDict({"x": jagged(2, 3), "o": NonTensorStack({"a": 1}, "text"), "d": torch.ones(2, 4)}, batch_size=[2])
    for client in (ours(url), ours_in_memory(url)):
        with used(client):
            keys = [f"{client.client_id}-{place}" for place in range(2)]
            tq.kv_batch_put(keys, partition, data, [{"n": 0}, {"n": 1}])
            got = tq.kv_batch_get(keys, partition)
            assert [row.tolist() for row in got["x"].unbind()] == [[0, 1], [0, 1, 2]]
            assert got["o"] == [{"a": 1}, "text"]
            meta = client.kv_retrieve_meta(keys, partition)
            assert meta.field_schema["x"]["per_sample_shapes"] == [(2,), (3,)]
            assert meta.field_schema["d"]["shape"] == torch.Size([4])
            assert meta.field_schema["d"]["dtype"] is torch.float32
            assert meta.field_schema["o"]["is_non_tensor"]


def check_a_write_back_in_a_partition_of_mixed_fields(url: str, partition: str) -> None:
    with used(ours(url)):
        tq.kv_put("a", partition, dict(ROW), None)
        tq.kv_put("b", partition, {"x": torch.tensor([1])}, None)
        meta = tq.kv_put("b", partition, {"y": torch.tensor([1])}, None)
        assert sorted(meta.fields) == ["x", "y"]


def check_a_put_without_metadata(url: str, partition: str) -> None:
    with used(ours(url)) as client:
        meta = client.put(TensorDict({"x": torch.ones(3, 2)}, batch_size=[3]), partition_id=partition)
        assert (meta.size, meta.field_names, meta.is_ready) == (3, ["x"], True)
        meta.update_custom_meta([{"n": place} for place in range(3)])
        client.set_custom_meta(meta)
        assert client.get_meta(["x"], 3, partition, mode="force_fetch").custom_meta == [{"n": 0}, {"n": 1}, {"n": 2}]


def check_rows_of_two_partitions_in_one_put(url: str, partition: str) -> None:
    with used(ours(url)) as client:
        two = f"{partition}-two"
        rows = [client.kv_retrieve_meta("a", each, create=True) for each in (partition, two)]
        both = tq.BatchMeta.concat(rows)
        both.update_custom_meta([{"n": 0}, {"n": 1}])
        client.put(TensorDict({"x": jagged(2, 3)}, batch_size=[2]), both)
        assert tq.kv_list(partition) == {partition: {"a": {"n": 0}}}
        assert tq.kv_list(two) == {two: {"a": {"n": 1}}}
        assert tq.kv_batch_get("a", two)["x"][0].tolist() == [0, 1, 2]
        assert client.kv_retrieve_meta("a", two).get_shapes("x") == [(3,)]


def check_what_cannot_be_told_is_refused_before_a_byte(url: str, partition: str) -> None:
    with used(ours_in_memory(url)) as client:
        cells = client.storage_manager.storage_client.cells
        for fields, tag in (
            ({"a,b": torch.ones(1)}, None),
            ({"x": torch.ones(1)}, {"bytes": b"1"}),
            ({"x": torch.ones(1)}, {"deep": {1: "no text"}}),
            ({"x": torch.ones(1)}, {"large": "x" * 70_000}),
        ):
            raised((ValueError, TypeError), tq.kv_put, "a", partition, fields, tag)  # type: ignore[arg-type]
        raised(ValueError, tq.kv_batch_put, ["a", "b"], partition, None, [{"one": 1}])
        raised(RuntimeError, tq.kv_put, "control\x00", partition, dict(ROW), None)
        raised(RuntimeError, tq.kv_put, "a", "x" * 201, dict(ROW), None)
        assert not cells
        assert tq.kv_list() == {} or partition not in tq.kv_list()


def check_a_conflict_is_told_before_a_byte(url: str, partition: str) -> None:
    with used(ours_in_memory(url)) as client:
        tq.kv_put("a", partition, {"x": torch.ones(3)}, None)
        before = dict(client.storage_manager.storage_client.cells)
        for value in (torch.ones(3, dtype=torch.int64), torch.ones(3, 3), "text"):
            error = raised(FieldConflict, tq.kv_put, "b", partition, {"x": value}, None)
            assert "Nothing was written" in str(error)
        assert client.storage_manager.storage_client.cells == before


def check_a_write_after_a_clear_leaves_no_bytes(url: str, partition: str) -> None:
    with used(ours_in_memory(url)) as client:
        cells = client.storage_manager.storage_client.cells
        tq.kv_batch_put(["a", "b"], partition, TensorDict({"x": torch.ones(2, 2)}, batch_size=[2]), None)
        late = client.kv_retrieve_meta(["a", "b"], partition)
        tq.kv_clear("a", partition)
        error = raised(LateWrite, client.put, TensorDict({"y": torch.ones(2, 2)}, batch_size=[2]), late)
        assert error.global_indexes == (late.global_indexes[0],)  # type: ignore[attr-defined]
        alive = late.global_indexes[1]
        assert sorted(cells) == [f"{alive}@x", f"{alive}@y"]
        assert tq.kv_batch_get("b", partition, "y")["y"].shape[0] == 1


def check_a_write_after_the_end_of_its_partition_leaves_no_bytes(url: str, partition: str) -> None:
    with used(ours_in_memory(url)) as client:
        tq.kv_put("a", partition, dict(ROW), None)
        late = client.kv_retrieve_meta("a", partition)
        client.clear_partition(partition)
        raised(LateWrite, client.put, TensorDict({"y": torch.ones(1, 2)}, batch_size=[1]), late)
        assert not client.storage_manager.storage_client.cells
        tq.kv_put("a", partition, dict(ROW), None)  # the name may come again


async def check_the_same_with_await(url: str, partition: str) -> None:
    with used(ours(url)):
        await asyncio.gather(*(tq.async_kv_put(f"k{n}", partition, dict(ROW), {"n": n}) for n in range(20)))
        listed: dict[str, Any] = await tq.async_kv_list(partition)
        assert {key: tags["n"] for key, tags in listed[partition].items()} == {f"k{n}": n for n in range(20)}
        assert (await tq.async_kv_batch_get(["k3", "k1"], partition))["note"] == ["hello", "hello"]
        await tq.async_kv_clear(["k1", "k3"], partition)
        assert len((await tq.async_kv_list(partition))[partition]) == 18


def check_a_field_may_come_back_different(url: str, partition: str) -> None:
    with used(ours(url)):
        tq.kv_put("a", partition, {"x": torch.ones(3)}, None)
        tq.kv_put("b", partition, {"x": torch.ones(3)}, None)  # by now its dtype is known here
        tq.kv_clear(["a", "b"], partition)
        tq.kv_put("c", partition, {"x": torch.ones(3, dtype=torch.int64)}, None)
        assert tq.kv_batch_get("c", partition)["x"].dtype is torch.int64


def check_a_write_during_a_clear_leaves_no_bytes(url: str, partition: str) -> None:
    with used(ours_in_memory(url)) as client:
        cells = client.storage_manager.storage_client.cells
        tq.kv_batch_put(["a", "b"], partition, TensorDict({"x": torch.ones(2, 2)}, batch_size=[2]), None)
        late = client.kv_retrieve_meta(["a", "b"], partition)
        service = client._controller.service
        work = service.client.plan_clear(service.partition(partition), keys=["a"])
        asyncio.run_coroutine_threadsafe(work, client._loop).result()
        error = raised(LateWrite, client.put, TensorDict({"y": jagged(2, 3)}, batch_size=[2]), late)
        gone, alive = late.global_indexes
        assert error.global_indexes == (gone,)  # type: ignore[attr-defined]
        assert f"{gone}@y" not in cells
        assert tq.kv_batch_get("b", partition, "y")["y"][0].tolist() == [0, 1, 2]
        assert sorted(key for key in cells if key.startswith(f"{alive}@")) == [f"{alive}@x", f"{alive}@y"]
