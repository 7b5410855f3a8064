"""Rules about partitions and what is written to them, and reads of it."""

from dataclasses import replace

from hypothesis import strategies as st

from core.operations.produce import RowWrite
from tests.model import calls, draws
from tests.model.compare import assert_described, batch, described, key_line
from tests.model.machine import Machine
from tests.model.plain import Schema
from tests.model.said import Chosen, Write
from tests.model.samplers import Condition, passes


class Writing(Machine):
    """Put, patch, seal and delete partitions; insert, produce, patch and delete rows."""

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

    def put(self, name: str, data: st.DataObject) -> None:
        fields, meant = data.draw(draws.settings_of())
        call = calls.put(name, meant.expected, meant.most, meant.attempts, fields)
        self.both(call, lambda: self.plain.put(name, meant))

    def patch_partition(self, name: str, data: st.DataObject) -> None:
        expected, most = data.draw(st.sampled_from([None, 0, 2, 9])), data.draw(st.sampled_from([None, 4, 50]))
        attempts = data.draw(st.sampled_from([None, 1, 2, 3]))
        call = calls.patch(name, expected, most, attempts)
        self.both(call, lambda: self.plain.patch_partition(name, expected, most, attempts))

    def seal(self, name: str, _: st.DataObject) -> None:
        self.both(calls.seal(name), lambda: self.plain.seal(name))

    def look_at_partitions(self, _: str, data: st.DataObject) -> None:
        prefix = data.draw(draws.prefixes)
        lines = self.service.look(calls.list_partitions(prefix))["partitions"]
        names = [name for name in self.plain.state.partitions if name.startswith(prefix)]
        assert [line["partition_id"] for line in lines] == names

    def delete_partition(self, _: str, data: st.DataObject) -> None:
        name = data.draw(draws.doomed)
        done = self.both(calls.delete_partition(name), lambda: self.plain.delete_partition(name))
        assert done is not None
        assert done[0]["cleared_samples"] == done[1]

    def insert(self, name: str, data: st.DataObject) -> None:
        count = data.draw(st.integers(1, 5))
        keys = data.draw(draws.key_lists) if data.draw(st.booleans()) else None
        said, meant = data.draw(draws.writes(len(keys) if keys else count, None, keys))
        number, view = None if keys else count, data.draw(draws.views())
        done = self.both(calls.insert(name, number, said, view), lambda: self.plain.insert(name, number, meant))
        if done:
            assert (done[0]["global_indexes"], done[0]["created"]) == done[1]
            assert_described(done[0], self.plain.get(name), view)

    def produce(self, name: str, data: st.DataObject) -> None:
        indexes, keys, rows = self.some_rows(data, name)
        create = data.draw(st.booleans()) if keys else data.draw(st.integers(0, 9)) == 0
        said, meant = data.draw(draws.writes(rows, indexes, keys))
        schemas, meant.fields, backend, meant.backend = data.draw(draws.productions(rows))
        skip, skipped = data.draw(st.booleans()), self.plain.skipped(name, meant)
        done = self.both(
            calls.produce(name, said, create, schemas, backend, skip),
            lambda: self.plain.produce(name, meant, create, skip),
        )
        if done:
            assert (done[0]["global_indexes"], done[0]["created"]) == done[1]
            assert done[0].get("skipped") == (skipped if skip else None)

    def insert_a_group(self, name: str, data: st.DataObject) -> None:
        self.add_group(name, data, data.draw(st.integers(1, 3)), data.draw(st.integers(0, 5)))

    def add_group(self, name: str, data: st.DataObject, rows: int, number: int) -> None:
        """Mostly with weights."""
        groups: list[str | int | None] = [f"p{number}"] * rows
        cells, custom = data.draw(draws.columns(draws.WEIGHTS, rows))
        said, meant = RowWrite(group_ids=groups, custom_meta=cells), Write(groups=groups, custom=custom)
        self.both(calls.insert(name, rows, said), lambda: self.plain.insert(name, rows, meant))

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
            calls.produce(name, RowWrite(indexes), False, {known: schema}, {}),
            lambda: self.plain.produce(name, Write(indexes, fields={known: meant}), False),
        )

    def patch_custom_meta(self, name: str, data: st.DataObject) -> None:
        indexes, keys, rows = self.some_rows(data, name)
        said, meant = data.draw(draws.columns(draws.PATCHES, rows))
        mode = data.draw(draws.modes)
        recent = st.integers(max(0, self.plain.revision - 4), self.plain.revision)
        if_revision = data.draw(st.none() | recent)
        self.both(
            calls.patch_custom(name, RowWrite(indexes, keys, custom_meta=said, custom_meta_mode=mode), if_revision),
            lambda: self.plain.patch_custom(name, Write(indexes, keys, custom=meant, mode=mode), if_revision),
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
            calls.patch_backend(name, RowWrite(indexes, keys), said),
            lambda: self.plain.patch_backend(name, Write(indexes, keys), meant),
        )

    def chosen(self, data: st.DataObject, name: str) -> Chosen:
        """Rows of a partition, by any selector, sometimes with `where`; mostly one, or all there are."""
        partition = self.plain.find(name)
        rows = list(partition.rows) if partition else []
        where = data.draw(st.none() | draws.wheres)
        how = data.draw(st.sampled_from(["one", "one", "rows", "group_ids", "key_prefix", "all"]))
        if how == "group_ids":
            return Chosen(groups=data.draw(draws.some_of(["p0", "p1", "g", 7, "7", "nobody's"])), where=where)
        if how == "key_prefix":
            return Chosen(prefix=data.draw(st.sampled_from(["k", "k1", "x"])), where=where)
        if how == "rows" or not rows:
            indexes, keys, _ = self.some_rows(data, name)
            return Chosen(indexes, keys, where=where)
        return Chosen(rows if how == "all" else [data.draw(st.sampled_from(rows))], where=where)

    def delete_samples(self, name: str, data: st.DataObject) -> None:
        chosen = self.chosen(data, name)
        done = self.both(calls.delete_samples(name, chosen), lambda: self.plain.delete(name, chosen))
        if done:
            assert (done[0]["cleared"], done[0]["skipped_clearing"]) == done[1]

    def read(self, name: str, data: st.DataObject) -> None:
        partition, compact = self.plain.find(name), data.draw(st.booleans())
        if partition is not None:
            indexes = data.draw(st.lists(st.integers(0, self.plain.state.next_index + 1), max_size=8))
            fields = data.draw(st.none() | st.lists(st.sampled_from([*draws.FIELDS, "unknown"]), max_size=4))
            found = batch(self.service, name, indexes, fields, compact)
            assert found == described(partition, indexes, fields, compact)
            self._read_selected(name, replace(self.chosen(data, name), where=None))
            self._read_keys(name, data.draw(draws.wheres))

    def _read_selected(self, name: str, chosen: Chosen) -> None:
        """Rows that are not named one by one come in index order."""
        if (chosen.indexes, chosen.keys) == (None, None):
            rows = self.plain.state.partitions[name].rows.values()
            listed = self.service.look(calls.batch_of(name, chosen))["global_indexes"]
            assert listed == [row.index for row in rows if chosen.means(row)]

    def _read_keys(self, name: str, where: list[Condition]) -> None:
        rows = self.plain.state.partitions[name].rows.values()
        listed = self.service.look(calls.keys(name, "k", where))["keys"]
        assert listed == [key_line(row) for row in rows if row.key is not None and passes(row, where)]
