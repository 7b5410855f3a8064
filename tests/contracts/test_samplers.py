"""Each sampler passes the suite; what is its own is tested beside it."""

from collections import Counter
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings

from core.errors import Invalid
from core.operations.claim import Claimed, claim_now
from core.samplers import SAMPLERS, Sampler, sampler
from core.samplers.random import _GAMMA, _mixed, place
from tests.core.world import add, new_engine, write

from .sampler_suite import BIG, ROWS, SamplerContract, State, build, each_state


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


class TestLifo(SamplerContract):
    name: ClassVar[str] = "lifo"
    arguments: ClassVar[dict[str, Any]] = {}

    @settings(max_examples=60, derandomize=True, deadline=None)
    @given(ROWS)
    def test_highest_indexes_first(self, rows: list[Any]) -> None:
        state = build(rows)
        assert self.taken(state, 5) == sorted(state.free, reverse=True)[:5]


class TestPriority(SamplerContract):
    name: ClassVar[str] = "priority"
    arguments: ClassVar[dict[str, Any]] = {"weight": "n.w"}

    @settings(max_examples=60, derandomize=True, deadline=None)
    @given(ROWS)
    def test_heaviest_first_equal_ones_by_index_and_none_without_a_weight(self, rows: list[Any]) -> None:
        state = build(rows)
        weighed = weights_of(state)
        assert self.taken(state, 24) == sorted(weighed, key=lambda index: (-weighed[index], index))
        missing = state.free - set(weighed)
        found = self.sampler.blocking(state.partition, state.supply)
        expected = [("weight-missing", len(missing), tuple(sorted(missing)[:10]))] if missing else []
        assert [(b.reason, b.count, b.global_indexes) for b in found] == expected


class TestPriorityWithDefault(SamplerContract):
    name: ClassVar[str] = "priority"
    arguments: ClassVar[dict[str, Any]] = {"weight": "n.w", "weight_default": BIG + 1}

    @settings(max_examples=60, derandomize=True, deadline=None)
    @given(ROWS)
    def test_rows_without_a_number_stand_where_their_default_does(self, rows: list[Any]) -> None:
        state = build(rows)
        weighed = dict.fromkeys(state.free, BIG + 1) | weights_of(state)
        assert self.taken(state, 24) == sorted(weighed, key=lambda index: (-weighed[index], index))
        assert self.sampler.blocking(state.partition, state.supply) == []


class TestRandom(SamplerContract):
    name: ClassVar[str] = "random"
    arguments: ClassVar[dict[str, Any]] = {"seed": 3}

    @settings(max_examples=60, derandomize=True, deadline=None)
    @given(ROWS)
    def test_every_row_goes_out_and_its_place_depends_on_seed_and_index_alone(self, rows: list[Any]) -> None:
        state = build(rows)
        order = np.argsort(place(3, np.arange(200))).tolist()
        assert self.taken(state, 24) == [index for index in order if index in state.free]


class TestTokenBudget(SamplerContract):
    name: ClassVar[str] = "token_budget"
    arguments: ClassVar[dict[str, Any]] = {"weight": ["n", "w"], "budget": 3.5}

    @settings(max_examples=60, derandomize=True, deadline=None)
    @given(ROWS)
    def test_lowest_first_while_they_fit(self, rows: list[Any]) -> None:
        state = build(rows)
        assert self.taken(state, 4) == within(weights_of(state), 3.5, 4)


class TestTokenBudgetWithDefault(SamplerContract):
    name: ClassVar[str] = "token_budget"
    arguments: ClassVar[dict[str, Any]] = {"weight": ["n", "w"], "weight_default": 1.5, "budget": 3.5}

    @settings(max_examples=60, derandomize=True, deadline=None)
    @given(ROWS)
    def test_a_row_without_a_number_spends_its_default(self, rows: list[Any]) -> None:
        state = build(rows)
        weighed = dict.fromkeys(sorted(state.free), 1.5) | weights_of(state)
        assert self.taken(state, 4) == within(weighed, 3.5, 4)


class TestTokenBudgetBeyondFloats(SamplerContract):
    name: ClassVar[str] = "token_budget"
    arguments: ClassVar[dict[str, Any]] = {"weight": ["n", "w"], "budget": BIG + 1}

    @settings(max_examples=60, derandomize=True, deadline=None)
    @given(ROWS)
    def test_lowest_first_while_they_fit(self, rows: list[Any]) -> None:
        state = build(rows)
        assert self.taken(state, 4) == within(weights_of(state), BIG + 1, 4)

    def test_the_budget_is_reached_by_integers_no_float_tells_apart(self) -> None:
        for weights, enough in (([BIG, 1], 2), ([BIG, 2], 1), ([BIG + 1], 1), ([BIG], 4), ([BIG, 0.5], 4)):
            state = build([(None, "ready", weight) for weight in weights])
            assert self.sampler.enough(state.partition, state.supply, 4) == enough


def weights_of(state: State) -> dict[int, float]:
    """By definition: the free rows that have a number, in index order."""
    numbers = {index: state.weights[index] for index in sorted(state.free)}
    return {index: w for index, w in numbers.items() if isinstance(w, int | float) and not isinstance(w, bool)}


def within(weights: dict[int, float], budget: float, most: int) -> list[int]:
    taken: list[int] = []
    spent = Fraction(0)
    for index, weight in list(weights.items())[:most]:
        if taken and spent + Fraction(weight) > budget:
            break
        taken.append(index)
        spent += Fraction(weight)
        if spent > budget:
            break
    return taken


class WithMemory(SamplerContract):
    """A claim of another rank or batch gets other rows, the same one the same (tests/core/test_rank_aware.py)."""

    def asking(self, number: int) -> Sampler:
        at = {"dp_rank": number // self.step % self.ranks, "batch_index": number // self.step // self.ranks}
        return sampler(self.name, self.arguments | at)

    @each_state
    @given(ROWS)
    def test_what_was_claimed_is_told_again_and_nothing_changes(self, rows: list[Any]) -> None:
        state = build(rows)
        claims = []
        while isinstance(claimed := claim_now(state.engine, "p", self.wanted(len(claims) * self.step)), Claimed):
            claims.append(claimed)
        revision = state.engine.revision
        for number, first in enumerate(claims):
            again = claim_now(state.engine, "p", self.wanted(number * self.step))
            assert isinstance(again, Claimed)
            assert again.claim_id == first.claim_id
            assert again.batch.global_indexes.tolist() == first.batch.global_indexes.tolist()
        assert state.engine.revision == revision


class TestRankAware(WithMemory):
    name: ClassVar[str] = "rank_aware"
    arguments: ClassVar[dict[str, Any]] = {"dp_rank": 0, "batch_index": 0}
    step: ClassVar[int] = 2


class TestRankAwareInGroups(WithMemory):
    name: ClassVar[str] = "rank_aware"
    arguments: ClassVar[dict[str, Any]] = TestRankAware.arguments | {"n_samples_per_prompt": 2}
    step: ClassVar[int] = 2

    @each_state
    @given(ROWS)
    def test_it_takes_what_grpo_group_takes(self, rows: list[Any]) -> None:
        state = build(rows)
        groups = sampler(
            "grpo_group", {k: v for k, v in self.arguments.items() if k in ("n_samples_per_prompt", "group_by")}
        )
        alike = groups.take(state.partition, state.supply, 24)
        assert self.taken(state, 24) == state.partition.rows.global_index[alike].tolist()
        assert self.sampler.blocking(state.partition, state.supply) == groups.blocking(state.partition, state.supply)


class TestRankAwareByPosition(TestRankAwareInGroups):
    arguments: ClassVar[dict[str, Any]] = TestRankAwareInGroups.arguments | {"group_by": "position"}


class TestSeqlenBalanced(WithMemory):
    name: ClassVar[str] = "seqlen_balanced"
    arguments: ClassVar[dict[str, Any]] = {"dp_rank": 0, "batch_index": 0, "dp_size": 2, "weight": "n.w"}
    ranks: ClassVar[int] = 2


class TestSeqlenBalancedInGroups(WithMemory):
    name: ClassVar[str] = "seqlen_balanced"
    arguments: ClassVar[dict[str, Any]] = TestSeqlenBalanced.arguments | {"n_samples_per_prompt": 2}
    step: ClassVar[int] = 2
    ranks: ClassVar[int] = 2


class TestSeqlenBalancedByPosition(TestSeqlenBalancedInGroups):
    arguments: ClassVar[dict[str, Any]] = TestSeqlenBalancedInGroups.arguments | {"group_by": "position"}

    @each_state
    @given(ROWS)
    def test_windows_of_which_every_row_has_a_weight(self, rows: list[Any]) -> None:
        state = build(rows)
        windows = sampler("grpo_group", {"n_samples_per_prompt": 2, "group_by": "position"})
        rows_ = windows.take(state.partition, state.supply, 48)
        pairs = state.partition.rows.global_index[rows_].reshape(-1, 2).tolist()
        weighed = weights_of(state)
        assert self.taken(state, 48) == [index for pair in pairs if set(pair) <= weighed.keys() for index in pair]


class TestSeqlenBalancedWithDefault(TestSeqlenBalancedInGroups):
    arguments: ClassVar[dict[str, Any]] = TestSeqlenBalancedInGroups.arguments | {"weight_default": -2.5}

    @each_state
    @given(ROWS)
    def test_whole_groups_with_and_without_a_weight(self, rows: list[Any]) -> None:
        state = build(rows)
        groups = sampler("grpo_group", {"n_samples_per_prompt": 2})
        alike = groups.take(state.partition, state.supply, 48)
        assert self.taken(state, 48) == state.partition.rows.global_index[alike].tolist()


HELD = (
    TestSequential,
    TestGrpoGroup,
    TestGrpoGroupByPosition,
    TestLifo,
    TestPriority,
    TestPriorityWithDefault,
    TestRandom,
    TestTokenBudget,
    TestTokenBudgetWithDefault,
    TestRankAware,
    TestRankAwareInGroups,
    TestRankAwareByPosition,
    TestSeqlenBalanced,
    TestSeqlenBalancedInGroups,
    TestSeqlenBalancedByPosition,
    TestSeqlenBalancedWithDefault,
)


def test_every_sampler_is_held_to_the_suite() -> None:
    assert {kind.name for kind in HELD} == set(SAMPLERS)


def test_different_seeds_shuffle_differently_and_no_two_rows_share_a_place() -> None:
    indexes = np.arange(10_000)
    first, second = place(0, indexes), place(1, indexes)
    assert len(np.unique(np.concatenate([first, second]))) == 20_000
    assert np.argsort(first).tolist()[:50] != np.argsort(second).tolist()[:50]
    low = place(7, indexes) < np.uint64(2**63)
    assert 4_800 < np.count_nonzero(low) < 5_200


def test_the_shuffle_is_splitmix64() -> None:
    """The first outputs of the reference implementation (prng.di.unimi.it/splitmix64.c) for the state 1234567."""
    assert _mixed(np.uint64(1234567) + np.arange(1, 4, dtype=np.uint64) * _GAMMA).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


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
    found = sampler("grpo_group", {"n_samples_per_prompt": 2}).blocking(engine.partitions["p"], None)
    assert [(b.reason, b.count, b.group_ids) for b in found] == [
        ("group-incomplete", 1, (b'"small"',)),
        ("group-oversized", 3, (b'"large"',)),
    ]


def test_rows_without_a_group_are_of_none_that_is_whole() -> None:
    engine = new_engine()
    rows = add(engine, "p", 4, group_ids=[None, "small", None, "large"]) + add(engine, "p", 2, group_ids=["large"] * 2)
    found = sampler("grpo_group", {"n_samples_per_prompt": 2}).blocking(engine.partitions["p"], None)
    assert [(b.reason, b.count, b.global_indexes, b.group_ids) for b in found] == [
        ("group-incomplete", 3, tuple(rows[:3]), (b'"small"',)),
        ("group-oversized", 3, tuple(rows[3:]), (b'"large"',)),
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
    (open_window,) = by_position.blocking(engine.partitions["p"], None)
    assert (open_window.reason, open_window.count) == ("group-incomplete", 2)
    assert open_window.global_indexes == tuple(rows[3:])
    add(engine, "p", 1)
    assert by_position.blocking(engine.partitions["p"], None) == []
