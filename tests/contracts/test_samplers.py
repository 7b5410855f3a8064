"""Each sampler passes the suite; what is its own is tested beside it."""

from collections import Counter
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings

from core.errors import Invalid
from core.samplers import SAMPLERS, sampler
from tests.core.world import add, new_engine, write

from .sampler_suite import ROWS, SamplerContract, build


class TestSequential(SamplerContract):
    name: ClassVar[str] = "sequential"
    arguments: ClassVar[dict[str, Any]] = {}

    @settings(max_examples=60, derandomize=True, deadline=None)
    @given(ROWS)
    def test_lowest_indexes_first(self, rows: list[Any]) -> None:
        state = build(rows)
        assert self.taken(state, 5) == sorted(state.free)[:5]


class TestGrpoGroup(SamplerContract):
    name: ClassVar[str] = "grpo_group"
    arguments: ClassVar[dict[str, Any]] = {"n_samples_per_prompt": 2}
    step: ClassVar[int] = 2

    @settings(max_examples=60, derandomize=True, deadline=None)
    @given(ROWS)
    def test_whole_groups_of_exactly_n_and_all_of_them(self, rows: list[Any]) -> None:
        state = build(rows)
        sizes = Counter(group for group in state.groups.values() if group is not None)
        whole = {
            group
            for group, size in sizes.items()
            if size == 2 and {index for index, g in state.groups.items() if g == group} <= state.free
        }
        taken = self.taken(state, 24)
        assert sorted(taken) == sorted(index for index, group in state.groups.items() if group in whole)
        assert all(state.groups[a] == state.groups[b] for a, b in zip(taken[::2], taken[1::2], strict=True))


class TestGrpoGroupByPosition(SamplerContract):
    name: ClassVar[str] = "grpo_group"
    arguments: ClassVar[dict[str, Any]] = {"n_samples_per_prompt": 2, "group_by": "position"}
    step: ClassVar[int] = 2

    @settings(max_examples=60, derandomize=True, deadline=None)
    @given(ROWS)
    def test_windows_of_rows_ever_inserted_without_a_gap_or_two_groups(self, rows: list[Any]) -> None:
        state = build(rows)
        everyone = [0, *(index for index in range(1, state.engine.next_index, 2))]
        windows = [everyone[at : at + 2] for at in range(0, len(everyone) - 1, 2)]
        whole = [
            window
            for window in windows
            if set(window) <= state.free and len({state.groups[i] for i in window} - {None}) <= 1
        ]
        assert self.taken(state, 48) == [index for window in whole for index in window]


def test_every_sampler_is_held_to_the_suite() -> None:
    held = {kind.name for kind in (TestSequential, TestGrpoGroup, TestGrpoGroupByPosition)}
    assert held == set(SAMPLERS)


def test_a_batch_that_is_no_multiple_of_the_group_is_refused() -> None:
    with pytest.raises(Invalid, match="multiple of n_samples_per_prompt=8"):
        sampler("grpo_group", {"n_samples_per_prompt": 8}).check(12)


def test_unknown_names_and_arguments_are_refused() -> None:
    with pytest.raises(Invalid, match="use one of"):
        sampler("best", {})
    with pytest.raises(Invalid, match="grpo_group"):
        sampler("grpo_group", {})
    with pytest.raises(Invalid, match="sequential"):
        sampler("sequential", {"n_samples_per_prompt": 2})


def test_groups_too_small_and_too_large_are_named() -> None:
    engine = new_engine()
    rows = add(engine, "p", 4, group_ids=["small", "large", "large", "large"])
    write(engine, "p", rows, ["f"])
    found = sampler("grpo_group", {"n_samples_per_prompt": 2}).blocking(engine.partitions["p"])
    assert [(b.reason, b.count, b.group_ids) for b in found] == [
        ("group-incomplete", 1, (b'"small"',)),
        ("group-oversized", 3, (b'"large"',)),
    ]


def test_groups_in_shuffled_order_go_out_whole_oldest_group_first() -> None:
    engine = new_engine()
    names = ["b", 7, "a", "7", "a", "b", 7, "7", "b", "a", "7", 7]
    rows = [add(engine, "p", 1, group_ids=[name])[0] for name in names if add(engine, "other", group_ids=["a"])]
    write(engine, "p", rows[::-1], ["f"])
    partition = engine.partitions["p"]
    taken = sampler("grpo_group", {"n_samples_per_prompt": 3}).take(partition, partition.supply("t", ("f",)), 9)
    assert partition.rows.global_index[taken].tolist() == [rows[i] for i in (0, 5, 8, 1, 6, 11, 2, 4, 9)]


def test_the_last_window_is_named_while_rows_of_it_are_still_to_come() -> None:
    engine = new_engine()
    rows = add(engine, "p", 5)
    by_position = sampler("grpo_group", {"n_samples_per_prompt": 3, "group_by": "position"})
    (open_window,) = by_position.blocking(engine.partitions["p"])
    assert (open_window.reason, open_window.count) == ("group-incomplete", 2)
    assert open_window.global_indexes == tuple(rows[3:])
    add(engine, "p", 1)
    assert by_position.blocking(engine.partitions["p"]) == []
