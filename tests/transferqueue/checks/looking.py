"""What is read: batches by key, lists of keys kept up to date, statuses as TransferQueue's tensors."""

import torch
import transfer_queue as tq
from tensordict import TensorDict

from .planes import counted, ours, raised, used

ROW = {"x": torch.tensor([1, 2, 3]), "note": "hello"}


def check_a_list_costs_what_changed(url: str, partition: str) -> None:
    with used(ours(url)) as client:
        for n in range(3):
            tq.kv_put(f"k{n}", partition, None, {"n": n})
        first = tq.kv_list(partition)[partition]
        first["k0"]["n"] = "mine"  # nobody else's
        with counted() as calls:
            assert tq.kv_list(partition)[partition]["k0"] == {"n": 0}
        assert len(calls) == 1
        tq.kv_put("k0", partition, None, {"n": 7})
        tq.kv_clear("k1", partition)
        with used(ours(url)) as another:
            for each in (client, another):
                assert list(each.kv_list(partition)[partition].items()) == [("k0", {"n": 7}), ("k2", {"n": 2})]


def check_a_list_of_all_asks_once_where_nothing_changed(url: str, partition: str) -> None:
    with used(ours(url, job=partition)) as client:
        for name in ("one", "two"):
            tq.kv_put("a", name, dict(ROW), {"in": name})
        client.get_meta(["x"], 1, "one", task_name="t")
        both = {"one": {"a": {"in": "one"}}, "two": {"a": {"in": "two"}}}
        assert tq.kv_list() == both
        with counted() as calls:
            assert tq.kv_list() == both
        assert len(calls) == 1, calls


def check_a_partition_made_anew_is_listed_anew(url: str, partition: str) -> None:
    with used(ours(url)) as client, used(ours(url)) as other:
        tq.kv_put("a", partition, None, {"n": 1})
        assert client.kv_list(partition) == {partition: {"a": {"n": 1}}}
        other.clear_partition(partition)
        assert client.kv_list(partition) == {}
        other.kv_retrieve_meta("b", partition, create=True)
        assert client.kv_list(partition) == {partition: {"b": {}}}
        other.clear_partition(partition)
        other.kv_retrieve_meta("c", partition, create=True)
        assert client.kv_list(partition) == {partition: {"c": {}}}


def check_fields_that_not_all_rows_have_are_not_ready(url: str, partition: str) -> None:
    with used(ours(url)) as client:
        tq.kv_put("a", partition, dict(ROW), None)
        tq.kv_put("b", partition, {"x": torch.tensor([1])}, None)
        meta = client.kv_retrieve_meta(["b", "missing", "a"], partition)
        assert (meta.size, meta.field_names, meta.is_ready) == (2, ["x"], True)
        assert tq.kv_batch_get(["a", "b"], partition, "x")["x"].size(0) == 2
        assert "not ready" in str(raised(ValueError, tq.kv_batch_get, ["a", "b"], partition, ["x", "note"]))
        assert "not found" in str(raised(ValueError, tq.kv_batch_get, "missing", partition))
        assert "not found" in str(raised(ValueError, tq.kv_batch_get, "a", f"{partition}-not"))


def check_keys_of_indexes(url: str, partition: str) -> None:
    with used(ours(url)) as client:
        meta = client.kv_retrieve_meta(["a", "b"], partition, create=True)
        assert client.kv_retrieve_keys(meta.global_indexes[::-1], partition) == ["b", "a"]
        assert client.kv_retrieve_keys(meta.global_indexes[0], partition) == ["a"]
        unnamed = client.get_meta(["x"], 1, partition, mode="insert").global_indexes
        raised(RuntimeError, client.kv_retrieve_keys, unnamed, partition)
        raised(RuntimeError, client.kv_retrieve_keys, [0], f"{partition}-not")
        raised(ValueError, client.kv_retrieve_keys, [], partition)
        raised(TypeError, client.kv_retrieve_keys, ["a"], partition)


def check_statuses(url: str, partition: str) -> None:
    with used(ours(url)) as client:
        assert client.get_production_status(["x"], partition) == (None, None)
        assert client.get_consumption_status("t", partition) == (None, None)
        assert not client.check_consumption_status("t", partition)
        meta = client.put(TensorDict({"x": torch.ones(2, 2)}, batch_size=[2]), partition_id=partition)
        client.put(TensorDict({"y": torch.ones(1, 2)}, batch_size=[1]), meta[0])
        rows, status = client.get_production_status(["y", "x"], partition)
        assert (rows.tolist(), rows.dtype) == (meta.global_indexes, torch.int64)
        assert (status.tolist(), status.dtype) == ([[1, 1], [0, 1]], torch.int8)
        assert client.check_production_status(["x"], partition)
        assert not client.check_production_status(["x", "y"], partition)
        assert not client.check_production_status(["x", "unknown"], partition)
        client.get_meta(["x"], 1, partition, task_name="t")
        assert client.get_consumption_status("t", partition)[1].tolist() == [1, 0]
        assert not client.check_consumption_status("t", partition)
        client.get_meta(["x"], 1, partition, task_name="t")
        assert client.check_consumption_status("t", partition)
        assert client.reset_consumption(partition, "t")
        assert client.get_consumption_status("t", partition)[1].tolist() == [0, 0]
        assert client.reset_consumption(f"{partition}-not")


def check_all_rows_with_and_without_their_fields(url: str, partition: str) -> None:
    with used(ours(url)) as client:
        meta = client.put(TensorDict({"x": torch.ones(2, 2)}, batch_size=[2]), partition_id=partition)
        new = client.get_meta(["x", "later"], 1, partition, mode="insert")
        assert (new.field_names, new.is_ready) == (["later", "x"], False)
        found = client.get_meta(["x", "later"], 99, partition, mode="force_fetch")
        assert found.global_indexes == [*meta.global_indexes, *new.global_indexes]
        assert (found.field_names, found.production_status.tolist()) == (["x"], [1, 1, 0])


def check_names_with_slashes_and_jobs_apart(url: str, partition: str) -> None:
    with used(ours(url, job=f"{partition}-a")) as one, used(ours(url, job=f"{partition}-b")) as two:
        for client in (one, two):
            client.kv_retrieve_meta("k", "train/step_0%", create=True)
        assert one.get_partition_list() == two.get_partition_list() == ["train/step_0%"]
        one.clear_partition("train/step_0%")
        assert (one.kv_list(), two.kv_list()) == ({}, {"train/step_0%": {"k": {}}})
