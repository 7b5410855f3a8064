"""Fetches: polling or not, with each sampler; what is expected before it is there; checkpoints."""

import os
import tempfile
from pathlib import Path
from typing import Any

import torch
import transfer_queue as tq
from tensordict import TensorDict

from batchmeta.transferqueue import BadCall, NotEnoughData, UnsupportedSampler

from .planes import counted, info, ours, raised, used


def filled(client: Any, partition: str, rows: int, lengths: list[int] | None = None) -> Any:
    meta = client.put(TensorDict({"x": torch.ones(rows, 2)}, batch_size=[rows]), partition_id=partition)
    if lengths:
        meta.update_custom_meta([{"total_lengths": length} for length in lengths])
        client.set_custom_meta(meta)
    return meta


def check_a_poll_that_finds_too_little_is_empty(url: str, partition: str) -> None:
    with used(ours(url)) as client:
        assert client.get_meta(["x"], 2, partition, task_name="t").size == 0
        rows = filled(client, partition, 3).global_indexes
        assert client.get_meta(["x", "unknown"], 2, partition, task_name="t").size == 0
        first = client.get_meta(["x"], 2, partition, task_name="t")
        assert (first.global_indexes, first.is_ready) == (rows[:2], True)
        assert client.get_meta(["x"], 2, partition, task_name="t").size == 0
        assert client.get_meta(["x"], 3, partition, task_name="another").size == 3


def check_without_polling_it_waits_and_says_why(url: str, partition: str) -> None:
    os.environ["TQ_CONTROLLER_GET_METADATA_TIMEOUT"] = "0"
    try:
        with used(ours(url, polling=False)) as client:
            filled(client, partition, 1)
            error = raised(NotEnoughData, client.get_meta, ["x"], 2, partition, task_name="t")
            assert isinstance(error, RuntimeError | TimeoutError)
            assert "Required: 2, available: 1" in str(error)
            assert client.get_meta(["x"], 1, partition, task_name="t").size == 1
    finally:
        del os.environ["TQ_CONTROLLER_GET_METADATA_TIMEOUT"]


def check_wrong_arguments(url: str, partition: str) -> None:
    with used(ours(url)) as client:
        raised(BadCall, client.get_meta, ["x"], None, partition, task_name="t")
        raised(BadCall, client.get_meta, ["x"], 1, partition)
        raised(BadCall, client.get_meta, ["x"], 1, partition, mode="take")
        raised(RuntimeError, client.get_meta, None, 1, partition, mode="insert")


def check_whole_groups(url: str, partition: str) -> None:
    with used(ours(url, tq.GRPOGroupNSampler(n_samples_per_prompt=2))) as client:
        first = client.kv_retrieve_meta(list("abcd"), partition, create=True)
        for key in "abd":
            tq.kv_put(key, partition, {"x": torch.ones(2)}, None)
        assert client.get_meta(["x"], 2, partition, task_name="t").global_indexes == first.global_indexes[:2]
        assert client.get_meta(["x"], 2, partition, task_name="t").size == 0
        raised(RuntimeError, client.get_meta, ["x"], 3, partition, task_name="t")
        tq.kv_put("c", partition, {"x": torch.ones(2)}, None)
        config = {"dp_rank": 1, "batch_index": 4, "task_name": "t", "partition_id": partition}
        for _ in range(2):
            fetched = client.get_meta(["x"], 2, partition, task_name="t", sampling_config=config)
            assert fetched.global_indexes == first.global_indexes[2:]


def check_ranks_get_the_same_rows(url: str, partition: str) -> None:
    with used(ours(url, tq.RankAwareSampler)) as client:
        rows = filled(client, partition, 4).global_indexes

        def fetched(rank: int, batch: int) -> list[int]:
            config = {"dp_rank": rank, "batch_index": batch, "task_name": "t", "partition_id": partition}
            return client.get_meta(["x"], 2, partition, task_name="t", sampling_config=config).global_indexes

        assert fetched(0, 0) == rows[:2]
        assert fetched(1, 0) == rows[2:]
        assert fetched(0, 0) == rows[:2]
        assert fetched(0, 1) == []


def check_balanced_shares(url: str, partition: str) -> None:
    sampler = tq.SeqlenBalancedSampler(n_samples_per_prompt=2, dp_size=2)
    with used(ours(url, sampler)) as client:
        rows = filled(client, partition, 4, [9, 9, 1, 1]).global_indexes
        shares = [
            client.get_meta(
                ["x"], 2, partition, task_name="t", sampling_config={"dp_rank": rank, "batch_index": 0}
            ).global_indexes
            for rank in range(2)
        ]
        assert sorted(map(sorted, shares)) == [rows[:2], rows[2:]]


def check_own_samplers(url: str) -> None:
    class Own(tq.BaseSampler):
        def sample(self, ready_indexes: list[int], batch_size: int, *_: Any, **__: Any) -> Any:
            return ready_indexes[:batch_size], []

    assert "own-sampler.md" in str(raised(UnsupportedSampler, info, url, Own))
    Own.batchmeta_sampler = {"name": "lifo"}  # type: ignore[attr-defined]
    assert info(url, Own()).sampler == {"name": "lifo"}


def check_what_is_expected_counts_before_it_is_there(url: str, partition: str) -> None:
    os.environ["TQ_PRE_ALLOC_SAMPLE_NUM"] = "3"
    try:
        with used(ours(url)) as client:
            rows = filled(client, partition, 2).global_indexes
            client.get_meta(["x"], 2, partition, task_name="t")
            assert not client.check_consumption_status("t", partition)
            assert not client.check_production_status(["x"], partition)
            assert [each.tolist() for each in client.get_consumption_status("t", partition)] == [[*rows, -1], [1, 1, 0]]
            assert client.get_production_status(["x"], partition)[1].tolist() == [[1], [1], [0]]
            filled(client, partition, 1)
            client.get_meta(["x"], 1, partition, task_name="t")
            assert client.check_consumption_status("t", partition)
            client.clear_partition(partition)
            filled(client, partition, 1)
            client.get_meta(["x"], 1, partition, task_name="t")
            assert not client.check_consumption_status("t", partition)
    finally:
        del os.environ["TQ_PRE_ALLOC_SAMPLE_NUM"]


def check_a_checkpoint_goes_back(url: str, partition: str) -> None:
    with used(ours(url)) as client:
        if not hasattr(client, "save_controller_checkpoint"):
            return  # before 0.1.9
        filled(client, partition, 2)
        tq.kv_put("a", partition, None, {"n": 1})
        assert tq.kv_list(partition) == {partition: {"a": {"n": 1}}}
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "controller_state.pkl")
            client.save_controller_checkpoint(path)
            tq.kv_put("a", partition, None, {"n": 2})
            client.get_meta(["x"], 2, partition, task_name="t")
            with counted() as calls:
                client.load_controller_checkpoint(path)
            assert calls[-1].startswith("DELETE /v1/checkpoints/")
            raised(FileNotFoundError, client.load_controller_checkpoint, str(Path(folder) / "another"))
        assert tq.kv_list(partition) == {partition: {"a": {"n": 1}}}
        assert client.get_meta(["x"], 2, partition, task_name="t").size == 2


def check_a_restore_of_a_shared_service_is_refused(url: str, partition: str) -> None:
    with used(ours(url, job=f"{partition}-a")) as one, used(ours(url, job=f"{partition}-b")) as two:
        if not hasattr(one, "load_controller_checkpoint"):
            return  # before 0.1.9
        two.kv_retrieve_meta("k", "p", create=True)
        assert "other jobs" in str(raised(RuntimeError, one.load_controller_checkpoint, "/nonexistent"))
