"""Both planes live in one process, and what both say is the same."""

from typing import Any

import torch
import transfer_queue as tq
from tensordict import TensorDict
from tensordict.tensorclass import NonTensorStack

from .planes import ours, theirs, used


def check_theirs_goes_on_beside_ours(url: str, partition: str) -> None:
    with used(theirs()) as old, used(ours(url)) as new:
        old.kv_retrieve_meta("theirs", partition, create=True)
        new.kv_retrieve_meta("ours", partition, create=True)
        assert list(old.kv_list(partition)[partition]) == ["theirs"]
        assert list(new.kv_list(partition)[partition]) == ["ours"]
        assert old.get_partition_list() == [partition]


def check_both_say_the_same(url: str, partition: str) -> None:
    told = []
    for client in (theirs(), ours(url)):
        with used(client):
            told.append(story(client, partition))
    for mine, other in zip(*told, strict=True):
        assert mine == other, (mine, other)


def story(client: Any, partition: str) -> list[Any]:
    """Some of everything, as plain values; indexes are counted from the first."""
    told: list[Any] = []
    data = TensorDict({"x": jagged(2, 3, 4), "o": NonTensorStack(1, "a", None), "d": torch.ones(3, 2)}, batch_size=[3])
    put = tq.kv_batch_put(list("abc"), partition, data, [{"n": n, "null": None} for n in range(3)])
    told.append(("put", put.keys, put.tags, put.fields, put.extra_info))
    alone = tq.kv_put("a", partition, {"y": torch.ones(2), "s": "text"}, {"n": {"deep": [1]}})
    told.append(("one", alone.tags, alone.fields))
    told.append(("tags", tq.kv_put("d", partition, None, {"only": True}).tags))
    told.append(("list", tq.kv_list(partition)))
    first = client.kv_retrieve_meta(["a", "b", "c"], partition)
    base = first.global_indexes[0]
    told.append(("meta", plain(first, base)))
    told.append(("data", values(tq.kv_batch_get(["c", "a"], partition, ["x", "o"]))))
    fetched = client.get_meta(["x", "d"], 2, partition, task_name="t")
    told.append(("fetch", plain(fetched, base), values(client.get_data(fetched))))
    told.append(("status", client.get_consumption_status("t", partition)[1].tolist()))
    told.append(("consumed", client.check_consumption_status("t", partition)))
    told.append(("produced", client.check_production_status(["x"], partition)))
    told.append(("keys", client.kv_retrieve_keys(first.global_indexes, partition)))
    tq.kv_clear(["b", "d"], partition)
    told.append(("cleared", tq.kv_list(partition), partition in client.get_partition_list()))
    told.append(("left", plain(client.get_meta(["x", "y"], 9, partition, mode="force_fetch"), base)))
    client.clear_partition(partition)
    told.append(("gone", tq.kv_list(partition), partition in client.get_partition_list()))
    return told


def plain(meta: Any, base: int) -> dict[str, Any]:
    return {
        "indexes": [row - base for row in meta.global_indexes],
        "partitions": meta.partition_ids,
        "fields": {name: plain_schema(schema) for name, schema in sorted(meta.field_schema.items())},
        "status": meta.production_status.tolist(),
        "tags": meta.custom_meta,
        "backend": meta._custom_backend_meta,
        "ready": meta.is_ready,
        "names": meta.field_names,
        "size": meta.size,
    }


def plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Without the one shape that theirs keeps of a nested field's first sample."""
    shape = None if schema["is_nested"] or schema["shape"] is None else tuple(schema["shape"])
    shapes = [None if each is None else tuple(each) for each in schema.get("per_sample_shapes", ())]
    return {**schema, "shape": shape, "per_sample_shapes": shapes}


def values(data: TensorDict) -> dict[str, Any]:
    def one(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return list(value)
        return [row.tolist() for row in value.unbind()]

    return {name: one(data[name]) for name in sorted(data.keys())}


def jagged(*lengths: int) -> torch.Tensor:
    return torch.nested.as_nested_tensor([torch.arange(length) for length in lengths], layout=torch.jagged)
