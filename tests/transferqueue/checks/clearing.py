"""Clears: no bytes stay behind, and what a backend could not delete is finished later."""

from typing import Any

import torch
import transfer_queue as tq
from tensordict import TensorDict

from batchmeta.transferqueue import finish_clears

from .planes import counted, ours, ours_in_memory, used

ROW = {"x": torch.tensor([1, 2, 3]), "note": "hello"}


def check_a_clear_deletes_every_field_ever_written(url: str, partition: str) -> None:
    with used(ours_in_memory(url)) as client:
        cells = client.storage_manager.storage_client.cells
        tq.kv_put("a", partition, dict(ROW), None)
        narrow = client.kv_retrieve_meta("a", partition).select_fields(["x"])
        tq.kv_put("a", partition, {"later": torch.ones(1)}, None)
        assert len(cells) == 3
        client.clear_samples(narrow)
        assert not cells
        assert tq.kv_list(partition) == {partition: {}}


def check_rows_of_different_fields(url: str, partition: str) -> None:
    with used(ours_in_memory(url, job=partition)) as client:
        tq.kv_put("a", "p", dict(ROW), None)
        tq.kv_put("b", "p", {"y": torch.ones(1)}, None)
        tq.kv_put("c", "p", None, {"only": "tags"})
        tq.kv_clear(["a", "b", "c", "unknown"], "p")
        assert not client.storage_manager.storage_client.cells
        tq.kv_clear("a", "p")
        tq.kv_clear("a", "not")
        assert finish_clears() == 0  # a clear of nothing leaves nothing pending


def check_a_clear_of_keys_is_two_calls(url: str, partition: str) -> None:
    with used(ours(url)):
        tq.kv_put("a", partition, dict(ROW), None)
        with counted() as calls:
            tq.kv_clear("a", partition)
        assert [call.rpartition("/")[2] for call in calls] == ["clears", "commit"]


def check_a_failed_storage_clear_is_finished_by_the_next(url: str, partition: str) -> None:
    with used(ours_in_memory(url, job=partition)) as client:
        store = client.storage_manager.storage_client
        for key in "ab":
            tq.kv_put(key, "p", dict(ROW), None)
        store.fails = 1
        tq.kv_clear("a", "p")
        assert len(store.cells) == 4
        assert tq.kv_list("p") == {"p": {"b": {}}}  # hidden all the same
        tq.kv_clear("b", "p")
        assert not store.cells
        assert finish_clears() == 0


def check_a_clear_left_by_another_process_is_finished_on_demand(url: str, partition: str) -> None:
    with used(ours_in_memory(url, job=partition)) as client:
        store = client.storage_manager.storage_client
        tq.kv_put("a", "p", dict(ROW), None)
        store.fails = 1
        tq.kv_clear("a", "p")
        with used(ours_in_memory(url, job=partition)) as other:
            other.storage_manager.storage_client.cells = store.cells
            assert finish_clears() == 1
        assert not store.cells
        store.fails = 1  # what `close` would try again is ended by now


def check_the_error_of_one_storage_unit_is_seen(url: str, partition: str) -> None:
    with used(ours(url)) as client:
        manager = client.storage_manager
        meta = client.put(TensorDict({"x": torch.ones(4, 2)}, batch_size=[4]), partition_id=partition)
        whole = type(manager)._clear_single_storage_unit
        broken = next(iter(manager.storage_unit_infos))

        async def one_fails(self: Any, rows: list[int], target_storage_unit: str) -> None:
            if target_storage_unit == broken:
                raise OSError("the unit is away")
            await whole(self, rows, target_storage_unit=target_storage_unit)

        type(manager)._clear_single_storage_unit = one_fails
        try:
            client.clear_samples(meta)
            assert held(client) == 2
        finally:
            type(manager)._clear_single_storage_unit = whole
        client.clear_samples(client.put(TensorDict({"x": torch.ones(1, 2)}, batch_size=[1]), partition_id=partition))
        assert held(client) == 0


def check_the_end_of_a_partition(url: str, partition: str) -> None:
    with used(ours(url)) as client:
        client.put(TensorDict({"x": torch.ones(5, 2)}, batch_size=[5]), partition_id=partition)
        client.clear_partition(partition)
        assert held(client) == 0
        assert partition not in client.get_partition_list()
        assert client.get_meta(["x"], 1, partition, task_name="t").size == 0
        client.clear_partition(partition)


def held(client: Any) -> int:
    """Rows that the storage units hold."""
    return sum(len({row for rows in unit.storage_data.field_data.values() for row in rows}) for unit in client.units)
