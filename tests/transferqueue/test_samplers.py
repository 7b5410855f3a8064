"""Samplers of TransferQueue as those of the service, without TransferQueue: objects of the same names and members."""

from typing import Any

import pytest

from batchmeta.transferqueue.errors import UnsupportedSampler
from batchmeta.transferqueue.samplers import claim_sampler, spec_of


def theirs(name: str, **members: Any) -> Any:
    """An instance of a class of that name that TransferQueue could have made."""
    return type(name, (), {"__module__": "transfer_queue.sampler", **members})()


def test_each_sampler_has_its_spec() -> None:
    assert spec_of(theirs("SequentialSampler")) == {"name": "sequential"}
    assert spec_of(type(theirs("SequentialSampler"))) == {"name": "sequential"}
    assert spec_of(theirs("RankAwareSampler")) == {"name": "rank_aware"}
    group = spec_of(theirs("GRPOGroupNSampler", n_samples_per_prompt=8))
    assert group == {"name": "grpo_group", "n_samples_per_prompt": 8, "group_by": "position"}
    balanced = spec_of(theirs("SeqlenBalancedSampler", n_samples_per_prompt=8, dp_size=4))
    assert balanced.items() >= {"name": "seqlen_balanced", "dp_size": 4, "weight": "total_lengths"}.items()


def test_a_fetch_adds_rank_and_batch() -> None:
    config = {"dp_rank": 2, "batch_index": 5, "task_name": "t", "partition_id": "p"}
    assert claim_sampler({"name": "sequential"}, config) == {"name": "sequential"}
    ranked = {"name": "rank_aware", "dp_rank": 2, "batch_index": 5}
    assert claim_sampler({"name": "rank_aware"}, config) == ranked
    group = {"name": "grpo_group", "n_samples_per_prompt": 8, "group_by": "position"}
    assert claim_sampler(group, None) == group
    assert claim_sampler(group, {"dp_rank": 0}) == group
    assert claim_sampler(group, config) == {**group, **ranked}
    balanced = {"name": "seqlen_balanced", "dp_size": 4}
    assert claim_sampler(balanced, {}) == {**balanced, "dp_rank": 0, "batch_index": 0}


def test_a_sampler_of_ones_own() -> None:
    own = type("Own", (), {})()
    with pytest.raises(UnsupportedSampler, match="batchmeta_sampler"):
        spec_of(own)
    with pytest.raises(UnsupportedSampler):
        spec_of(type("SequentialSampler", (), {})())  # of that name, but not TransferQueue's
    own.batchmeta_sampler = {"name": "nearest", "target": 0.5}
    assert spec_of(own) == {"name": "nearest", "target": 0.5}
