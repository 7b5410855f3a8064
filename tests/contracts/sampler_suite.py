"""What every sampler must do, whatever it prefers: subclass `SamplerContract` and name the sampler and its arguments.

States are drawn: rows in groups, some ready, some consumed, some cleared, another partition's between them.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.batch import View
from core.engine import Engine
from core.operations.claim import Claimed, Wanted, claim_now
from core.operations.delete import delete
from core.operations.partitions import put_partition
from core.partition import Partition
from core.samplers import Sampler, sampler
from core.selection import Selector
from core.supply import Supply
from tests.core.world import TENSOR, add, new_engine, write

ROW = st.tuples(st.sampled_from(["a", "b", "c", None]), st.sampled_from(["idle", "ready", "consumed", "cleared"]))
ROWS = st.lists(ROW, max_size=24)

# One suite, many subclasses: that is the point of it, and without a database nothing is replayed across them.
each_state = settings(
    max_examples=40,
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

    @property
    def partition(self) -> Partition:
        return self.engine.partitions["p"]

    @property
    def supply(self) -> Supply:
        return self.partition.supply("t", ("f",))


def build(rows: list[tuple[str | None, str]]) -> State:
    """Rows of `p` interleaved with rows of another partition."""
    engine = new_engine()
    put_partition(engine, "p", None, None, None, {"f": TENSOR})
    indexes: dict[int, tuple[str | None, str]] = {}
    add(engine, "p", 1)
    for group, fate in rows:
        indexes[add(engine, "p", 1, group_ids=[group])[0]] = (group, fate)
        add(engine, "other", 1, group_ids=["a"])
    consumed = [index for index, (_, fate) in indexes.items() if fate == "consumed"]
    if consumed:
        write(engine, "p", consumed, ["f"])
        claim_now(engine, "p", Wanted("t", ("f",), len(consumed), 1, 0, sampler("sequential", {}), View()))
    write(engine, "p", [index for index, (_, fate) in indexes.items() if fate in ("ready", "cleared")], ["f"])
    delete(engine, "p", Selector(indexes=[index for index, (_, fate) in indexes.items() if fate == "cleared"]))
    free = {index for index, (_, fate) in indexes.items() if fate == "ready"}
    return State(engine, free, {index: group for index, (group, fate) in indexes.items() if fate != "cleared"})


class SamplerContract:
    """The suite."""

    name: ClassVar[str]
    arguments: ClassVar[dict[str, Any]]
    step: ClassVar[int] = 1

    @property
    def sampler(self) -> Sampler:
        return sampler(self.name, self.arguments)

    def taken(self, state: State, most: int) -> list[int]:
        rows = self.sampler.take(state.partition, state.supply, most)
        return state.partition.rows.global_index[rows].tolist()

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
    @given(ROWS)
    def test_it_offers_no_less_than_it_gives(self, rows: list[Any]) -> None:
        state = build(rows)
        offered = self.sampler.offers(state.partition, state.supply)
        assert offered >= len(self.taken(state, 24 * self.step))

    @each_state
    @given(ROWS)
    def test_claims_take_each_row_once_until_nothing_is_left_to_give(self, rows: list[Any]) -> None:
        state = build(rows)
        wanted = Wanted("t", ("f",), self.step, self.step, 0, self.sampler, View())
        seen: list[int] = []
        while isinstance(claimed := claim_now(state.engine, "p", wanted), Claimed):
            seen += claimed.batch.global_indexes.tolist()
        assert len(seen) == len(set(seen))
        assert set(seen) <= state.free
        assert self.taken(state, self.step) == []
