"""The engine does what api.md says: random calls, a restart among them, each held against a plain model of dicts.

After every call: all that can be seen is the model's; the supplies equal a fresh scan; a call that left all as it was
made no revision; a refused one left every byte as it was; a restart brings back the same. TEST_LONG=1: longer runs.
"""

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

import core.engine
import core.partition
from core.errors import Refused
from core.operations.consumption import reset_consumption
from core.operations.delete import delete
from core.operations.partitions import delete_partition, patch_partition, put_partition, seal_partition
from core.operations.produce import RowWrite, insert, patch_backend_meta, patch_custom_meta, produce
from core.selection import Selector
from tests.core.world import Book, new_engine
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
        self.book.take(self.engine)
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

    @initialize(sizes=st.lists(st.integers(1, 3), min_size=2, max_size=4), data=st.data())
    def begin(self, sizes: list[int], data: st.DataObject) -> None:
        if data.draw(st.booleans()):
            self.put("a", data)
        for number, rows in enumerate(sizes):
            self.add_group("a", rows, number)
        self.produce_for_rows_that_are_there("a", data)

    @rule(operation=draws.operations, name=draws.partitions, data=st.data())
    def call(self, operation: str, name: str, data: st.DataObject) -> None:
        """One rule for all: Hypothesis leaves some rules out of each run, and few claims would find anything."""
        getattr(self, operation)(name, data)

    def put(self, name: str, data: st.DataObject) -> None:
        fields, meant = data.draw(draws.settings_of())
        call = lambda: put_partition(self.engine, name, meant.expected, meant.most, None, fields)  # noqa: E731
        self.both(call, lambda: self.plain.put(name, meant))

    def patch_partition(self, name: str, data: st.DataObject) -> None:
        expected, most = data.draw(st.sampled_from([None, 0, 2, 9])), data.draw(st.sampled_from([None, 4, 50]))
        call = lambda: patch_partition(self.engine, name, expected, most, None)  # noqa: E731
        self.both(call, lambda: self.plain.patch_partition(name, expected, most))

    def seal(self, name: str, _: st.DataObject) -> None:
        self.both(lambda: seal_partition(self.engine, name), lambda: self.plain.seal(name))

    def delete_partition(self, _: str, data: st.DataObject) -> None:
        name = data.draw(draws.doomed)
        answer, cleared = self.both(
            lambda: delete_partition(self.engine, name, None), lambda: self.plain.delete_partition(name)
        )
        assert answer.cleared == cleared

    def insert(self, name: str, data: st.DataObject) -> None:
        count = data.draw(st.integers(1, 5))
        keys = data.draw(draws.key_lists) if data.draw(st.booleans()) else None
        said, meant = data.draw(draws.writes(len(keys) if keys else count, None, keys))
        number = None if keys else count
        done = self.both(
            lambda: insert(self.engine, name, number, said, False), lambda: self.plain.insert(name, number, meant)
        )
        if done:
            (answer, created), (indexes, new) = done
            assert (answer.global_indexes.tolist(), created) == (indexes, new)

    def produce(self, name: str, data: st.DataObject) -> None:
        indexes, keys, rows = self.some_rows(data, name)
        create = data.draw(st.booleans()) if keys else data.draw(st.integers(0, 9)) == 0
        said, meant = data.draw(draws.writes(rows, indexes, keys))
        schemas, meant.fields, backend, meant.backend = data.draw(draws.productions(rows))
        done = self.both(
            lambda: produce(self.engine, name, said, create, schemas, backend),
            lambda: self.plain.produce(name, meant, create),
        )
        if done:
            answer, (indexes, new) = done
            assert (answer.global_indexes.tolist(), answer.created) == (indexes, new)

    def insert_a_group(self, name: str, data: st.DataObject) -> None:
        self.add_group(name, data.draw(st.integers(1, 3)), data.draw(st.integers(0, 5)))

    def add_group(self, name: str, rows: int, number: int) -> None:
        groups: list[str | int | None] = [f"p{number}"] * rows
        said, meant = RowWrite(group_ids=groups), Write(groups=groups)
        self.both(lambda: insert(self.engine, name, rows, said, False), lambda: self.plain.insert(name, rows, meant))

    def produce_for_rows_that_are_there(self, name: str, data: st.DataObject) -> None:
        """What most calls do: claims find something."""
        known, partition = data.draw(st.sampled_from(["ids", "ids", "mask"])), self.plain.find(name)
        indexes = list(partition.rows) if partition else []
        if indexes and data.draw(st.integers(0, 3)) == 0:
            indexes = data.draw(st.lists(st.sampled_from(indexes), max_size=6, unique=True))
        ragged = data.draw(st.integers(0, 4)) == 0
        schema, meant = data.draw(draws.schemas(known, len(indexes)) if ragged else draws.everyday)
        meant = Schema(meant.kind, meant.dtype, meant.ragged, meant.rank, None, meant.shapes or [(4,)] * len(indexes))
        self.both(
            lambda: produce(self.engine, name, RowWrite(indexes), False, {known: schema}, {}),
            lambda: self.plain.produce(name, Write(indexes, fields={known: meant}), False),
        )

    def patch_custom_meta(self, name: str, data: st.DataObject) -> None:
        indexes, keys, rows = self.some_rows(data, name)
        said, meant = data.draw(draws.columns(draws.PATCHES, rows))
        self.both(
            lambda: patch_custom_meta(self.engine, name, RowWrite(indexes, keys, custom_meta=said)),
            lambda: self.plain.patch_custom(name, Write(indexes, keys, custom=meant)),
        )

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

    def delete_samples(self, name: str, data: st.DataObject) -> None:
        indexes, keys, _ = self.some_rows(data, name)
        partition = self.plain.find(name)
        if partition and partition.rows and data.draw(st.integers(0, 2)):
            indexes, keys = list(partition.rows), None
            indexes = [data.draw(st.sampled_from(indexes))] if data.draw(st.integers(0, 4)) else indexes
        selector = Selector(indexes, keys)
        done = self.both(lambda: delete(self.engine, name, selector), lambda: self.plain.delete(name, indexes, keys))
        if done:
            assert done[0][0] == done[1]

    def reset(self, name: str, data: st.DataObject) -> None:
        task = data.draw(st.none() | draws.tasks)
        done = self.both(lambda: reset_consumption(self.engine, name, task), lambda: self.plain.reset(name, task))
        if done:
            assert done[0][0] == done[1]

    def claim(self, name: str, data: st.DataObject) -> None:
        waiting = Waiting.drawn(data, name, self.plain.find(name))
        if waiting.begin(self.engine, self.plain):
            self.waiting.append(waiting)

    def retry(self, _: str, data: st.DataObject) -> None:
        if not self.waiting:
            return
        is_last = data.draw(st.booleans())
        waiting = self.waiting.pop(data.draw(st.integers(0, len(self.waiting) - 1)))
        if waiting.again(self.engine, self.plain, is_last):
            self.waiting.append(waiting)

    def read(self, name: str, data: st.DataObject) -> None:
        partition, compact = self.plain.find(name), data.draw(st.booleans())
        if partition is not None:
            indexes = data.draw(st.lists(st.integers(0, self.plain.state.next_index + 1), max_size=8))
            fields = data.draw(st.none() | st.lists(st.sampled_from([*draws.FIELDS, "unknown"]), max_size=4))
            found = batch(self.engine, name, indexes, fields, compact)
            assert found == described(partition, indexes, fields, compact)

    def restart(self, _: str, __: st.DataObject) -> None:
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
            max_examples=300 if LONG else 60 if ON_CPU else 20,
            stateful_step_count=60 if LONG else 30,
            deadline=None,
            derandomize=True,
            phases=[phase for phase in Phase if ON_CPU or phase is not Phase.shrink],  # slow there, and the same here
            suppress_health_check=list(HealthCheck),
        ),
    )
