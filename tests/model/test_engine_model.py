"""The engine does what api.md says: random calls, a restart among them, each held against a plain model of dicts.

After every call: all that can be seen is the model's; the supplies equal a fresh scan; a call that left all as it was
made no revision; a refused call left every byte of the state as it was; a restart brings back the same state.
TEST_LONG=1: more and longer runs.
"""

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import core.engine
import core.partition
from core.errors import Refused
from core.operations.consumption import reset_consumption
from core.operations.delete import delete
from core.operations.partitions import delete_partition, put_partition
from core.operations.produce import RowWrite, insert, patch_backend_meta, patch_custom_meta, produce
from core.selection import Selector
from tests.core.world import TENSOR, Book, new_engine
from tests.model import draws
from tests.model.compare import batch, check, described, dump
from tests.model.model import MAX_DELETED, Plain, Refusal, Write
from tests.model.plain import Schema
from tests.model.supplies import check_supplies
from tests.model.waiting import Waiting

LONG = os.environ.get("TEST_LONG") == "1"
ON_CPU = new_engine().device.type == "cpu"


class EngineAgainstModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.engine = new_engine()
        self.plain = Plain()
        self.book = Book()
        self.waiting: list[Waiting] = []

    # Calls: the same to both, refused by both or by neither

    def both(self, call: Callable[[], Any], meant: Callable[[], Any]) -> Any:
        """(the engine's answer, the model's), or None where both refuse."""
        before, revision = dump(self.engine), self.plain.revision
        try:
            expected = meant()
        except Refusal as refusal:
            codes = refusal.codes
        else:
            answer = call()
            assert (dump(self.engine) == before) == (self.plain.revision == revision)
            return answer, expected
        with pytest.raises(Refused) as refused:
            call()
        assert refused.value.code in codes
        assert dump(self.engine) == before
        assert not self.engine.log
        assert not self.engine.changed
        return None

    def some_rows(self, data: st.DataObject, name: str) -> tuple[list[int] | None, list[str] | None, int]:
        """Indexes or keys, mostly of rows that are there; and how many."""
        partition = self.plain.find(name)
        rows = list(partition.rows.values()) if partition else []
        stray = not rows or data.draw(st.integers(0, 7)) == 0
        if data.draw(st.integers(0, 2)) == 0:
            there = [row.key for row in rows if row.key is not None]
            keys = data.draw(draws.key_lists if stray or not there else draws.some_of(there))
            return None, keys, len(keys)
        unsure = st.lists(st.integers(0, self.plain.state.next_index + 1), max_size=4)
        indexes = data.draw(unsure if stray else draws.some_of([row.index for row in rows]))
        return indexes, None, len(indexes)

    @initialize(rows=st.integers(2, 6))
    def begin(self, rows: int) -> None:
        self.insert_a_group("a", rows, 0, True)

    @rule(name=draws.partitions, said=draws.settings_of())
    def put(self, name: str, said: tuple[dict[str, Any], Any]) -> None:
        fields, meant = said
        call = lambda: put_partition(self.engine, name, meant.expected, meant.most, None, fields)  # noqa: E731
        self.both(call, lambda: self.plain.put(name, meant))

    @precondition(lambda self: len(self.plain.state.partitions) > 1)
    @rule(name=draws.doomed)
    def delete_partition(self, name: str) -> None:
        answer, cleared = self.both(
            lambda: delete_partition(self.engine, name, None), lambda: self.plain.delete_partition(name)
        )
        assert answer.cleared == cleared

    @rule(name=draws.partitions, count=st.integers(1, 5), data=st.data())
    def insert(self, name: str, count: int, data: st.DataObject) -> None:
        keys = data.draw(draws.key_lists) if data.draw(st.booleans()) else None
        said, meant = data.draw(draws.writes(len(keys) if keys else count, None, keys))
        number = None if keys else count
        done = self.both(
            lambda: insert(self.engine, name, number, said, False), lambda: self.plain.insert(name, number, meant)
        )
        if done:
            (answer, created), (indexes, new) = done
            assert (answer.global_indexes.tolist(), created) == (indexes, new)

    @rule(name=draws.partitions, create=st.booleans(), data=st.data())
    def produce(self, name: str, create: bool, data: st.DataObject) -> None:
        indexes, keys, rows = self.some_rows(data, name)
        said, meant = data.draw(draws.writes(rows, indexes, keys))
        schemas, meant.fields, backend, meant.backend = data.draw(draws.productions(rows))
        done = self.both(
            lambda: produce(self.engine, name, said, create, schemas, backend),
            lambda: self.plain.produce(name, meant, create),
        )
        if done:
            answer, (indexes, new) = done
            assert (answer.global_indexes.tolist(), answer.created) == (indexes, new)

    @rule(name=draws.partitions, rows=st.integers(1, 3), number=st.integers(0, 9), ready=st.booleans())
    def insert_a_group(self, name: str, rows: int, number: int, ready: bool) -> None:
        groups: list[str | int | None] = [f"p{number}"] * rows
        said, meant = RowWrite(group_ids=groups), Write(groups=groups)
        done = self.both(
            lambda: insert(self.engine, name, rows, said, False), lambda: self.plain.insert(name, rows, meant)
        )
        if done and ready:
            self.produce_field(name, done[1][0], "ids")

    @rule(name=draws.partitions, known=st.sampled_from(["ids", "ids", "mask"]))
    def produce_for_all_rows(self, name: str, known: str) -> None:
        partition = self.plain.find(name)
        self.produce_field(name, list(partition.rows) if partition else [], known)

    def produce_field(self, name: str, indexes: list[int], known: str) -> None:
        """What most calls do: claims find something."""
        meant = Schema("tensor", "int64", False, 1, None, [(4,)] * len(indexes))
        self.both(
            lambda: produce(self.engine, name, RowWrite(indexes), False, {known: TENSOR}, {}),
            lambda: self.plain.produce(name, Write(indexes, fields={known: meant}), False),
        )

    @rule(name=draws.partitions, data=st.data())
    def patch_custom_meta(self, name: str, data: st.DataObject) -> None:
        indexes, keys, rows = self.some_rows(data, name)
        said, meant = data.draw(draws.columns(draws.PATCHES, rows))
        self.both(
            lambda: patch_custom_meta(self.engine, name, RowWrite(indexes, keys, custom_meta=said)),
            lambda: self.plain.patch_custom(name, Write(indexes, keys, custom=meant)),
        )

    @rule(name=draws.partitions, data=st.data())
    def patch_backend_meta(self, name: str, data: st.DataObject) -> None:
        indexes, keys, rows = self.some_rows(data, name)
        partition = self.plain.find(name)
        known = list(partition.fields if partition and partition.fields else draws.FIELDS)
        names = data.draw(draws.some_of([*known * 9, draws.FIELDS[0]]))
        columns = {known: data.draw(draws.columns(draws.CELLS, rows)) for known in names}
        said = {known: column for known, (column, _) in columns.items()}
        meant = {known: cells for known, (_, cells) in columns.items()}
        self.both(
            lambda: patch_backend_meta(self.engine, name, RowWrite(indexes, keys), said),
            lambda: self.plain.patch_backend(name, Write(indexes, keys), meant),
        )

    @rule(name=draws.partitions, data=st.data())
    def delete_samples(self, name: str, data: st.DataObject) -> None:
        indexes, keys, _ = self.some_rows(data, name)
        selector = Selector(indexes, keys)
        done = self.both(lambda: delete(self.engine, name, selector), lambda: self.plain.delete(name, indexes, keys))
        if done:
            assert done[0][0] == done[1]

    @rule(name=draws.partitions, task=st.none() | draws.tasks)
    def reset(self, name: str, task: str | None) -> None:
        done = self.both(lambda: reset_consumption(self.engine, name, task), lambda: self.plain.reset(name, task))
        if done:
            assert done[0][0] == done[1]

    # Claims: see waiting.py

    @rule(name=draws.partitions, data=st.data())
    def claim(self, name: str, data: st.DataObject) -> None:
        waiting = Waiting.drawn(data, name, self.plain.find(name))
        if waiting.begin(self.engine, self.plain):
            self.waiting.append(waiting)

    @precondition(lambda self: self.waiting)
    @rule(is_last=st.booleans(), data=st.data())
    def retry(self, is_last: bool, data: st.DataObject) -> None:
        waiting = self.waiting.pop(data.draw(st.integers(0, len(self.waiting) - 1)))
        if waiting.again(self.engine, self.plain, is_last):
            self.waiting.append(waiting)

    @rule(name=draws.partitions, data=st.data(), compact=st.booleans())
    def read(self, name: str, data: st.DataObject, compact: bool) -> None:
        partition = self.plain.find(name)
        if partition is not None:
            indexes = data.draw(st.lists(st.integers(0, self.plain.state.next_index + 1), max_size=8))
            fields = data.draw(st.none() | st.lists(st.sampled_from([*draws.FIELDS, "unknown"]), max_size=4))
            found = batch(self.engine, name, indexes, fields, compact)
            assert found == described(partition, indexes, fields, compact)

    @rule()
    def restart(self) -> None:
        self.book.take(self.engine)
        replayed = self.book.replayed()
        assert dump(replayed) == dump(self.engine)
        self.engine = replayed
        self.waiting.clear()

    @invariant()
    def all_that_can_be_seen_is_the_models(self) -> None:
        self.book.take(self.engine)
        check(self.engine, self.plain)

    @invariant()
    def supplies_equal_a_fresh_scan(self) -> None:
        check_supplies(self.engine, self.plain)

    @invariant()
    def those_who_wait_are_ripe_when_there_is_enough(self) -> None:
        for waiting in self.waiting:
            waiting.check_ripe(self.plain)


def test_the_engine_is_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core.engine, "MAX_DELETED", MAX_DELETED)
    monkeypatch.setattr(core.partition, "GAPS", 2)
    monkeypatch.setattr(core.partition, "MAX_SUPPLIES", 3)
    run_state_machine_as_test(
        EngineAgainstModel,
        settings=settings(
            max_examples=600 if LONG else 60 if ON_CPU else 20,
            stateful_step_count=60 if LONG else 30,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
