"""What every sampler must do, whatever it prefers: subclass `SamplerContract` and name the sampler and its arguments.

States are drawn: rows in groups, some ready, some consumed, some cleared, another partition's between them.
TEST_LONG=1: more of them.
"""

import json
import os
from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.engine import Engine
from core.operations.claim import Claimed, ClaimRequest, claim_now
from core.operations.consumption import reset_consumption
from core.operations.delete import delete
from core.operations.partitions import put_partition
from core.operations.produce import RowWrite, patch_custom_meta
from core.reading.batch import View
from core.reading.selectors import Selector
from core.samplers import Sampler, sampler
from core.state.partition import Partition
from core.state.supply.supply import Supply
from tests.core.world import TENSOR, add, new_engine, write

LONG = os.environ.get("TEST_LONG") == "1"
BIG = 2**53  # beyond it a float64 confuses integers
WEIGHTS = (None, "7", True, 0, 1, 2.5, 2.5, -1, 10, BIG + 1, BIG, -BIG - 1, float(BIG))
ROW = st.tuples(
    st.sampled_from(["a", "b", "c", None]),
    st.sampled_from(["idle", "ready", "ready", "consumed", "cleared"]),
    st.sampled_from(WEIGHTS),
)
ROWS = st.lists(ROW, max_size=24)

# One suite, many subclasses: that is the point of it, and without a database nothing is replayed across them.
each_state = settings(
    max_examples=200 if LONG else 25,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.differing_executors],
)


@dataclass(frozen=True, slots=True)
class State:
    """An engine with partition `p`, and by definition which of its indexes task `t` may take."""

    engine: Engine
    free: set[int]
    groups: dict[int, str | None]
    weights: dict[int, Any]

    @property
    def partition(self) -> Partition:
        return self.engine.partitions["p"]

    @property
    def supply(self) -> Supply:
        return self.partition.supply("t", ("f",))


def build(rows: list[tuple[str | None, str, Any]]) -> State:
    """Rows of `p` interleaved with rows of another partition."""
    engine = new_engine()
    put_partition(engine, "p", None, None, None, {"f": TENSOR})
    indexes: dict[int, tuple[str | None, str]] = {}
    add(engine, "p", 1)
    weights: dict[int, Any] = {}
    for group, fate, weight in rows:
        index = add(engine, "p", 1, group_ids=[group], custom_meta=[meta_of(weight)])[0]
        indexes[index], weights[index] = (group, fate), weight
        add(engine, "other", 1, group_ids=["a"])
    consumed = [index for index, (_, fate) in indexes.items() if fate == "consumed"]
    if consumed:
        write(engine, "p", consumed, ["f"])
        claim_now(engine, "p", ClaimRequest("t", ("f",), len(consumed), 1, 0, sampler("sequential", {}), View()))
    write(engine, "p", [index for index, (_, fate) in indexes.items() if fate in ("ready", "cleared")], ["f"])
    delete(engine, "p", Selector(indexes=[index for index, (_, fate) in indexes.items() if fate == "cleared"]))
    free = {index for index, (_, fate) in indexes.items() if fate == "ready"}
    groups = {index: group for index, (group, fate) in indexes.items() if fate != "cleared"}
    return State(engine, free, groups, weights)


def meta_of(weight: Any) -> bytes:
    """Custom meta whose `n.w` is the weight, or that has none."""
    return json.dumps({} if weight is None else {"n": {"w": weight}}).encode()


def change(state: State, weights: list[Any]) -> None:
    """Other weights, new rows, one row less, and the task anew every other time."""
    rows = state.partition.rows.after(-1, len(weights))
    indexes = state.partition.rows.global_index[rows].tolist()
    patches = [meta_of(weight) for weight, _ in zip(weights, indexes, strict=False)]
    patch_custom_meta(state.engine, "p", RowWrite(indexes, custom_meta=patches))
    new = add(state.engine, "p", 3, group_ids=["d", "d", "a"], custom_meta=[meta_of(weight) for weight in weights[:3]])
    write(state.engine, "p", new, ["f"])
    delete(state.engine, "p", Selector(indexes=indexes[1:2]))
    if len(indexes) % 2:
        reset_consumption(state.engine, "p", "t")


class SamplerContract:
    """The suite."""

    name: ClassVar[str]
    arguments: ClassVar[dict[str, Any]]
    step: ClassVar[int] = 1
    ranks: ClassVar[int] = 1

    @property
    def sampler(self) -> Sampler:
        return sampler(self.name, self.arguments)

    def asking(self, number: int) -> Sampler:
        """The sampler of the claim of that number; one with memory must be asked for another batch."""
        return self.sampler

    def taken(self, state: State, most: int) -> list[int]:
        rows = self.sampler.take(state.partition, state.supply, most)
        return state.partition.rows.global_index[rows].tolist()

    def wanted(self, number: int) -> ClaimRequest:
        return ClaimRequest("t", ("f",), self.step, self.step, 0, self.asking(number), View())

    @each_state
    @given(ROWS, st.integers(1, 4))
    def test_only_free_rows_none_twice_never_more_than_asked(self, rows: list[Any], batches: int) -> None:
        state = build(rows)
        taken = self.taken(state, batches * self.step)
        assert set(taken) <= state.free
        assert max(Counter(taken).values(), default=1) == 1
        assert len(taken) <= batches * self.step

    @each_state
    @given(ROWS, st.integers(1, 4))
    def test_looking_changes_nothing_and_gives_the_same_again(self, rows: list[Any], batches: int) -> None:
        state = build(rows)
        assert self.taken(state, batches * self.step) == self.taken(state, batches * self.step)
        assert state.supply.ready.count == len(state.free)

    @each_state
    @given(ROWS, st.integers(1, 4))
    def test_the_same_rows_and_arguments_give_the_same_wherever_they_are(self, rows: list[Any], batches: int) -> None:
        assert self.taken(build(rows), batches * self.step) == self.taken(build(rows), batches * self.step)

    @each_state
    @given(ROWS, st.lists(st.sampled_from(WEIGHTS), min_size=24, max_size=24))
    def test_what_is_kept_through_changes_is_what_would_be_built_anew(
        self, rows: list[Any], weights: list[Any]
    ) -> None:
        state = build(rows)
        for round_ in range(2):
            self.taken(state, self.step)
            change(state, weights)
            kept = [self.taken(state, most * self.step) for most in (1, 3, 24)]
            state.partition.supplies.drop()
            assert kept == [self.taken(state, most * self.step) for most in (1, 3, 24)], round_
            least = ClaimRequest(
                "t", ("f",), 2 * self.step, self.step, 0, self.asking(round_ * self.step * self.ranks), View()
            )
            claim_now(state.engine, "p", least)

    @each_state
    @given(ROWS)
    def test_it_offers_no_less_than_it_gives(self, rows: list[Any]) -> None:
        state = build(rows)
        offered = self.sampler.offers(state.partition, state.supply)
        assert offered >= len(self.taken(state, 24 * self.step))

    @each_state
    @given(ROWS)
    def test_claims_take_each_row_once_until_nothing_is_left_to_give(self, rows: list[Any]) -> None:
        state = build(rows)
        seen: list[int] = []
        while isinstance(claimed := claim_now(state.engine, "p", self.wanted(len(seen))), Claimed):
            seen += claimed.batch.global_indexes.tolist()
        assert len(seen) == len(set(seen))
        assert set(seen) <= state.free
        assert len(self.taken(state, self.step * self.ranks)) < self.step * self.ranks
