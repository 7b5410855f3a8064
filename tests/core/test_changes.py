"""Following keys: a mirror built from the changes alone equals the listing, and gets no removal of an unknown key.

Random writes, removals, pages and restarts, the mirror held against a scan; then the rules one by one.
"""

import json
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from core.apply import partitions
from core.engine import Engine
from core.errors import Compacted, Invalid, PartitionCleared, PartitionNotFound
from core.operations import changes
from core.operations.changes import Changes, ChangesRequest, await_changes, list_changes
from core.operations.claim import ClaimRequest, claim_now
from core.operations.clears import ClearRequest, abort_clear, commit_clear, plan_clear
from core.operations.delete import delete
from core.operations.expiry import expire
from core.operations.parked import Parked
from core.operations.partitions import delete_partition
from core.operations.produce import RowWrite, insert, patch_backend_meta, patch_custom_meta, produce
from core.operations.revoke import revoke
from core.reading import key_changes as following
from core.reading.batch import View
from core.reading.selectors import Selector
from core.samplers import sampler
from core.state import key_history as past
from core.state.cells.json_cells import Const
from core.state.where import Where
from tests.core.test_where import parsed
from tests.core.world import TENSOR, Book, Clock, add, add_keys, new_engine, write
from tests.model.compare import dump

P = "p"
NEW = parsed(("v", ">=", 5))
ABSENT = parsed(("v", "exists", False))


def names(changes: Changes) -> tuple[list[str], list[str]]:
    """(keys listed, keys removed)."""
    return [json.loads(line.key) for line in changes.lines], [json.loads(key) for key in changes.removed]


def since(engine: Engine, revision: int, where: Where | None = None, **more: Any) -> tuple[list[str], list[str]]:
    return names(list_changes(engine, P, ChangesRequest(revision, where=where, **more)))


def put(engine: Engine, **values: int | None) -> None:
    """Rows of these keys, made if need be, with `v` in their custom meta."""
    metas = [json.dumps({} if value is None else {"v": value}).encode() for value in values.values()]
    insert(engine, P, None, RowWrite(keys=list(values), custom_meta=metas), View())


def drop(engine: Engine, *keys: str) -> None:
    delete(engine, P, Selector(keys=list(keys)))


# A mirror


@dataclass
class Mirror:
    """What one follower knows: the custom meta of each key, as of `revision`."""

    asked: ChangesRequest
    known: dict[str, Any] = field(default_factory=dict)
    fulfilled: set[str] = field(default_factory=set)

    def follow(self, engine: Engine) -> None:
        """All pages; the revision of each page is good to go on from."""
        asked = self.asked
        while True:
            page = list_changes(engine, P, asked)
            self._take(page)
            if page.next_cursor is None:
                self.asked = replace(self.asked, since=page.revision)
                return
            asked = replace(asked, cursor=page.next_cursor)

    def follow_by_revision(self, engine: Engine) -> None:
        """One page, and not its cursor: what stands between two pages is told again."""
        page = list_changes(engine, P, self.asked)
        self._take(page)
        assert page.revision >= self.asked.since
        self.asked = replace(self.asked, since=page.revision)

    def _take(self, page: Changes) -> None:
        listed, removed = names(page)
        assert not set(listed) & set(removed)
        assert len(set(listed)) == len(listed)
        revisions = [line.revision for line in page.lines]
        assert revisions == sorted(revisions)
        assert set(removed) <= self.fulfilled, "a row that never matched was listed"
        for key in removed:
            self.known.pop(key, None)
        self.known |= {json.loads(line.key): json.loads(line.custom_meta) for line in page.lines}

    def look(self, engine: Engine) -> dict[str, Any]:
        """What it must know, by a scan."""
        rows = engine.partitions[P].rows
        there = rows.after(-1, 10_000)
        keys = partition_keys(engine, there)
        cells = engine.partitions[P].custom_meta_of(there)
        fulfil = np.ones(len(cells), bool) if self.asked.where is None else self.asked.where.matches(cells)
        found = zip(keys, cells, fulfil, strict=True)
        listed = {key: json.loads(cell) for key, cell, good in found if good and key and self._is_meant(key)}
        self.fulfilled |= set(listed)
        return listed

    def _is_meant(self, key: str) -> bool:
        return key.startswith(self.asked.prefix)


def partition_keys(engine: Engine, rows: Any) -> list[str | None]:
    return [json.loads(key) for key in engine.partitions[P].keys_of(rows)]


def do_something(engine: Engine, chance: np.random.Generator) -> None:
    keys = [f"{'ab'[i % 2]}{i}" for i in sorted(chance.choice(12, int(chance.integers(1, 5)), replace=False))]
    metas = [json.dumps({"v": int(chance.integers(0, 10))} if chance.random() < 0.8 else {}).encode() for _ in keys]
    rows = engine.partitions[P].rows
    names = [json.dumps(key).encode() for key in keys]
    there = [key for key, index in zip(keys, rows.find(names), strict=True) if index is not None]
    kept = [i for i, name in enumerate(names) if name not in rows.clearing_of(names)]
    keys, metas = [keys[i] for i in kept], [metas[i] for i in kept]  # others are refused
    what = chance.integers(0, 10)
    if what < 3:
        insert(engine, P, None, RowWrite(keys=keys, custom_meta=metas), View())
    elif what == 3:
        produce(engine, P, RowWrite(keys=keys, custom_meta=metas), True, {"f": TENSOR}, {})
    elif what == 4 and there:
        patch_custom_meta(engine, P, RowWrite(keys=there, custom_meta=[b'{"v":null}'] * len(there)))
    elif what == 5:
        drop(engine, *keys)
    elif what == 6 and there:
        revoke(engine, P, Selector(keys=there), tuple(engine.partitions[P].fields)[:1] or ("f",))
    elif what > 7:
        clear_something(engine, chance, there)
    elif what == 7:
        assert isinstance(engine.clock, Clock)
        insert(engine, P, None, RowWrite(keys=keys, custom_meta=metas, ttl_s=3.0), View())
        engine.clock.now += float(chance.integers(0, 3))
        expire(engine, engine.clock.now)


def clear_something(engine: Engine, chance: np.random.Generator, there: list[str]) -> None:
    pending = list(engine.clears.pending.values())
    if not pending or chance.integers(0, 2):
        plan_clear(engine, P, ClearRequest(Selector(keys=there)))
    else:
        close = commit_clear if chance.integers(0, 2) else abort_clear
        close(engine, pending[0].clear_id)


@pytest.mark.parametrize("seed", range(6))
def test_a_mirror_is_the_listing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.state.partition.GAPS", 3)
    monkeypatch.setattr(changes, "MAX_SEEN", 5)
    monkeypatch.setattr(changes, "PLAIN", 1)
    monkeypatch.setattr(changes, "FILTERED", 2)
    monkeypatch.setattr(following, "LATELY", 3)
    chance = np.random.default_rng(seed)
    engine, book = new_engine(), Book()
    write(engine, P, add(engine, P, 2), ["f"])
    mirrors = [
        Mirror(ChangesRequest(0, prefix, where, int(chance.integers(1, 4))))
        for prefix in ("", "a")
        for where in (None, NEW, ABSENT)
    ]
    for step in range(150):
        do_something(engine, chance)
        for mirror in mirrors:
            mirror.look(engine)
            how = chance.integers(0, 6)
            if how == 0:
                mirror.follow(engine)
                assert mirror.known == mirror.look(engine), (seed, step)
            elif how == 1:
                mirror.follow_by_revision(engine)
        if step % 40 == 39:
            book.take(engine)
            clock, engine = engine.clock, book.replayed()
            engine.clock = clock


# The rules


def test_changes_come_in_the_order_of_their_revisions() -> None:
    engine = new_engine()
    put(engine, a=1, b=1, c=1)
    start = engine.revision
    put(engine, c=2)
    write(engine, P, [0], ["f"])
    put(engine, d=1)
    found = list_changes(engine, P, ChangesRequest(start))
    assert names(found) == (["c", "a", "d"], [])
    assert [line.revision for line in found.lines] == [start + 1, start + 2, start + 3]
    assert found.revision == engine.revision
    assert since(engine, engine.revision) == ([], [])
    assert since(engine, 2**62) == ([], [])


def test_what_left_is_removed_and_what_came_back_is_listed() -> None:
    engine = new_engine()
    put(engine, a=1, b=1, c=1)
    start = engine.revision
    drop(engine, "a", "b")
    assert since(engine, start) == ([], ["a", "b"])
    put(engine, b=7)
    assert since(engine, start) == (["b"], ["a"])
    assert since(engine, start + 1) == (["b"], [])
    drop(engine, "b")
    assert since(engine, start) == ([], ["a", "b"])


def test_clearing_is_leaving_and_an_abort_a_change() -> None:
    engine = new_engine()
    put(engine, a=9, b=9, c=1)
    start = engine.revision
    kept, gone = (
        plan_clear(engine, P, ClearRequest(Selector(keys=keys))).clear.clear_id for keys in (["a", "c"], ["b"])
    )
    for where, removed in ((None, ["a", "c", "b"]), (NEW, ["a", "b"])):
        assert since(engine, start, where) == ([], removed)
    waiting = parked(engine, ChangesRequest(engine.revision))
    commit_clear(engine, gone)
    assert isinstance(again(waiting), Parked)
    abort_clear(engine, kept)
    assert since(engine, start) == (["a", "c"], ["b"])
    assert since(engine, start, NEW) == (["a"], ["b"])
    found = again(waiting)
    assert isinstance(found, Changes)
    assert names(found) == (["a", "c"], [])


def test_what_changes_with_the_last_row_of_a_field_is_told() -> None:
    engine = new_engine()
    put(engine, a=1, b=1)
    write(engine, P, [0], ["f"])
    patch_backend_meta(engine, P, RowWrite([1]), {"f": Const(b'"x"')})
    seen = plan_clear(engine, P, ClearRequest(Selector([0]))).clear.clear_id
    start = engine.revision
    waiting = parked(engine, ChangesRequest(start))
    commit_clear(engine, seen)
    assert waiting.is_ripe()
    assert since(engine, start) == (["b"], [])


def test_rows_without_a_key_are_nobodys() -> None:
    engine = new_engine()
    add(engine, P, 3)
    put(engine, a=1)
    start = engine.revision
    delete(engine, P, Selector([0]))
    add(engine, P, 1)
    write(engine, P, [1], ["f"])
    assert since(engine, start) == ([], [])


@pytest.mark.parametrize("removed", [[0, 1], [0, 2, 3, 4]], ids=["side by side", "apart, some without a key"])
def test_only_rows_with_a_key_are_remembered(removed: list[int]) -> None:
    engine = new_engine()
    put(engine, a=1, b=2, c=3)
    add(engine, P, 2)
    start = engine.revision
    delete(engine, P, Selector(removed))
    keys = ["a", "b"] if removed == [0, 1] else ["a", "c"]
    left = engine.partitions[P].key_history.left.since(0)
    assert [json.loads(key) for key in left.key] == keys
    assert [json.loads(cell)["v"] for cell in left.cell] == [1, 2 if removed == [0, 1] else 3]
    assert since(engine, start) == ([], keys)


def test_what_no_longer_fulfils_where_is_removed_and_what_never_did_is_not_told() -> None:
    engine = new_engine()
    put(engine, a=9, b=1, c=9, d=9, e=1)
    start = engine.revision
    put(engine, a=2, b=3, c=8)
    drop(engine, "d", "e")
    write(engine, P, [1], ["f"])
    assert since(engine, start, NEW) == (["c"], ["a", "d"])
    assert since(engine, start, NEW, prefix="d") == ([], ["d"])
    later = engine.revision
    put(engine, a=1)
    drop(engine, "a")
    assert since(engine, later, NEW) == ([], [])
    assert since(engine, start, NEW) == (["c"], ["a", "d"])


def test_a_key_made_anew_that_does_not_fulfil_where_is_removed() -> None:
    engine = new_engine()
    put(engine, a=9)
    start = engine.revision
    drop(engine, "a")
    put(engine, a=1)
    assert since(engine, start, NEW) == ([], ["a"])
    put(engine, a=6)
    assert since(engine, start, NEW) == (["a"], [])


def test_what_is_said_of_a_row_as_it_is_made_replaces_nothing() -> None:
    engine = new_engine()
    put(engine, z=1)
    start = engine.revision
    put(engine, a=9, b=None)
    produce(engine, P, RowWrite(keys=["c"], custom_meta=[b'{"v":9}']), True, {"f": TENSOR}, {})
    assert since(engine, start, ABSENT) == (["b"], [])


def test_pages_cut_a_revision_and_say_what_is_whole() -> None:
    engine = new_engine()
    put(engine, a=1, b=1, c=1)
    first = engine.revision
    put(engine, d=1)
    asked = ChangesRequest(0, limit=2)
    one = list_changes(engine, P, asked)
    assert (names(one)[0], one.revision) == (["a", "b"], first - 1)
    two = list_changes(engine, P, replace(asked, cursor=one.next_cursor))
    assert (names(two)[0], two.revision, two.next_cursor) == (["c", "d"], engine.revision, None)
    three = list_changes(engine, P, ChangesRequest(0, limit=3))
    assert (names(three)[0], three.revision) == (["a", "b", "c"], first)
    assert since(engine, three.revision) == (["d"], [])


@pytest.mark.parametrize("cursor", ["x", "r1", "r1.", "r.1", "i1", "r1.1 ", f"r1.{'f' * 16}", "r1.11111111111111111"])
def test_a_cursor_of_another_listing_is_refused(cursor: str) -> None:
    engine = new_engine()
    put(engine, a=1)
    with pytest.raises(Invalid, match="next_cursor"):
        since(engine, 0, cursor=cursor)


def test_only_so_much_is_known_of_the_past(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past, "MAX_ROWS", 4)
    engine = new_engine()
    put(engine, **{f"k{i}": 9 for i in range(20)})
    start = engine.revision
    for i in range(6):
        drop(engine, f"k{i}")
    with pytest.raises(Compacted, match="since_revision=0"):
        since(engine, start)
    floor = engine.partitions[P].key_history.left.floor
    assert floor == start + 2
    assert since(engine, floor) == ([], ["k2", "k3", "k4", "k5"])
    assert len(since(engine, 0)[0]) == 14
    for i in range(6, 12):
        put(engine, **{f"k{i}": 1})
    assert since(engine, floor) == ([f"k{i}" for i in range(6, 12)], [f"k{i}" for i in range(2, 6)])
    with pytest.raises(Compacted):
        since(engine, floor, NEW)
    assert since(engine, engine.revision - 4, NEW) == ([], ["k8", "k9", "k10", "k11"])


def test_the_past_is_bounded_in_bytes_and_the_newest_change_is_always_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past, "MAX_BYTES", 1000)
    engine = new_engine()
    insert(engine, P, None, RowWrite(keys=["a", "b"], custom_meta=[json.dumps({"t": "x" * 400}).encode()] * 2), View())
    trail = engine.partitions[P].key_history.replaced
    for step in range(50):
        patch_custom_meta(engine, P, RowWrite(keys=["a", "b"], custom_meta=[json.dumps({"n": step}).encode()] * 2))
        assert since(engine, engine.revision - 1, parsed(("t", "exists"))) == (["a", "b"], [])
        assert trail._bytes == trail._size[trail._first : trail._n].sum() <= 1250
    assert len(trail._index) < 100
    patch_custom_meta(engine, P, RowWrite(keys=["a"], custom_meta=[json.dumps({"t": "x" * 5000}).encode()]))
    patch_custom_meta(engine, P, RowWrite(keys=["a"], custom_meta=[b'{"t":null}']))
    assert since(engine, engine.revision - 1, parsed(("t", "exists"))) == ([], ["a"])
    assert trail.floor == engine.revision - 1


def test_a_partition_made_anew_knows_when_the_last_one_ended() -> None:
    engine = new_engine()
    put(engine, a=1)
    start = engine.revision
    delete_partition(engine, P, None)
    ended = engine.revision
    with pytest.raises(PartitionCleared):
        since(engine, start)
    put(engine, b=1)
    assert since(engine, ended) == (["b"], [])
    with pytest.raises(Compacted, match="since_revision=0"):
        since(engine, start)
    assert since(engine, 0) == (["b"], [])  # whoever has no copy
    with pytest.raises(PartitionNotFound):
        list_changes(engine, "never", ChangesRequest(0))


def test_a_partition_made_anew_knows_nothing_of_one_that_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "MAX_DELETED", 1)
    engine = new_engine()
    put(engine, a=1)
    start = engine.revision
    delete_partition(engine, P, None)
    add(engine, "another")
    delete_partition(engine, "another", None)
    before = engine.revision
    put(engine, b=1)
    with pytest.raises(Compacted):
        since(engine, start)
    assert since(engine, before) == since(engine, 0) == (["b"], [])


def test_it_survives_a_restart() -> None:
    engine, book = new_engine(), Book()
    put(engine, a=9, b=9, c=9)
    start = engine.revision
    put(engine, a=1)
    drop(engine, "b")
    book.take(engine)
    replayed = book.replayed()
    assert dump(replayed.partitions) == dump(engine.partitions)
    for one in (engine, replayed):
        assert since(one, start) == (["a"], ["b"])
        assert since(one, start, NEW) == ([], ["a", "b"])


# Waiting


def parked(engine: Engine, asked: ChangesRequest) -> Parked[Changes]:
    waiting = await_changes(engine, P, asked, 30.0)
    assert isinstance(waiting, Parked)
    assert not waiting.is_ripe()
    return waiting


def again(waiting: Parked[Changes], *, is_last: bool = False) -> Changes | Parked[Changes]:
    return waiting.retry(is_last)


def test_who_waits_is_woken_by_a_change_that_matches_alone() -> None:
    engine = new_engine()
    put(engine, a=1, b=9)
    waiting = parked(engine, ChangesRequest(engine.revision, where=NEW))
    add_keys(engine, P, ["z"])
    write(engine, P, [0], ["f"])
    assert waiting.is_ripe()
    still = again(waiting)
    assert isinstance(still, Parked)
    assert still.deadline == waiting.deadline
    assert not still.is_ripe()
    put(engine, b=2)
    assert still.is_ripe()
    found = again(still)
    assert isinstance(found, Changes)
    assert names(found) == ([], ["b"])


def test_what_touches_no_row_wakes_no_one() -> None:
    engine = new_engine()
    put(engine, a=1)
    write(engine, P, [0], ["f"])
    waiting = parked(engine, ChangesRequest(engine.revision))
    claim_now(engine, P, ClaimRequest("t", ("f",), 1, 1, 0, sampler("sequential", {}), View(), 9.0))
    assert not waiting.is_ripe()


def test_at_the_deadline_it_says_that_there_was_nothing() -> None:
    engine = new_engine()
    put(engine, a=1)
    waiting = parked(engine, ChangesRequest(engine.revision, where=NEW))
    put(engine, a=2)
    found = again(waiting, is_last=True)
    assert isinstance(found, Changes)
    assert (found.has_items, found.revision) == (False, engine.revision)


def test_the_end_of_the_partition_ends_the_wait() -> None:
    engine = new_engine()
    put(engine, a=1)
    waiting = parked(engine, ChangesRequest(engine.revision))
    delete_partition(engine, P, None)
    assert waiting.is_ripe()
    with pytest.raises(PartitionCleared):
        again(waiting)


def test_what_there_is_already_is_not_waited_for() -> None:
    engine = new_engine()
    put(engine, a=1)
    assert isinstance(await_changes(engine, P, ChangesRequest(0), 30.0), Changes)
    with pytest.raises(PartitionNotFound):
        await_changes(engine, "never", ChangesRequest(0), 30.0)


def test_many_who_wait_for_one_change_look_for_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = new_engine()
    put(engine, a=1, b=1)
    waiting = [parked(engine, ChangesRequest(engine.revision, prefix)) for prefix in ("", "a", "b")]
    put(engine, a=2)
    looks: list[int] = []
    after = following.after
    monkeypatch.setattr(following, "after", lambda *place: looks.append(1) or after(*place))
    answers = [again(one) for one in waiting]
    assert [names(one)[0] for one in answers if isinstance(one, Changes)] == [["a"], ["a"]]
    assert isinstance(answers[2], Parked)
    assert len(looks) == 1
