"""An image is the whole state and nothing else: the engine made from it is the one that the journal makes."""

from typing import Any

import msgspec
import pytest

from core.engine import Engine
from core.events import Kept
from core.operations import expiry
from core.operations.changes import ChangesRequest, list_changes
from core.operations.claim import Claimed, ClaimRequest, claim_now
from core.operations.clears import ClearRequest, commit_clear, plan_clear
from core.operations.delete import delete
from core.operations.leases import Ack, ack
from core.operations.partitions import delete_partition, seal_partition
from core.operations.produce import RowWrite, patch_custom_meta
from core.operations.revoke import revoke
from core.reading.batch import View
from core.reading.selectors import Selector
from core.samplers import Sampler
from core.samplers.grpo_group import GrpoGroup
from core.samplers.rank_aware import RankAware
from core.samplers.seqlen_balanced import SeqlenBalanced
from core.samplers.sequential import Sequential
from core.snapshot.image import STATE, image, restore
from core.snapshot.image_reader import ImageReader
from core.snapshot.image_writer import ImageWriter
from core.state.transitions import ACCEPTED
from tests.core.test_where import parsed
from tests.core.world import Book, Clock, Schema, add, add_keys, new_engine, write

NOT_STATE = {
    "gone",
    "clock",
    "wall",
    "token",
    "device",
    "words",
    "cells",
    "signatures",
    "forms",
    "run",
    "pending",
    "log",
    "changed",
    "applying",
    "has_room",
    "ttl_deadlines",
}
RAGGED = Schema("int64", lengths=[3, 5])


def claim(engine: Engine, task: str, count: int, sampler: Sampler | None = None, lease_s: float | None = None) -> Any:
    return claim_now(engine, "p", ClaimRequest(task, ("x",), count, 1, 0.0, sampler or Sequential(), View(), lease_s))


def cells(*values: int) -> list[msgspec.Raw]:
    return [msgspec.Raw(b'{"at":%d}' % value) for value in values]


def lived(engine: Engine, book: Book) -> None:
    """A life with everything in it: keys, groups, cells of all kinds, leases in every state, clears, gaps, a seal."""
    a = add_keys(engine, "p", [f"k{i}" for i in range(40)], group_ids=[i // 4 for i in range(40)])
    b = add(engine, "p", 2, custom_meta=cells(1, 1))
    write(engine, "p", a, ["x"], {"x": cells(*range(40))})
    write(engine, "p", b, {"x": Schema("int64", [9]), "r": RAGGED, "o": Schema(kind="object")})
    book.take(engine)
    claim(engine, "plain", 3)
    first = claim(engine, "leased", 4, lease_s=60.0)
    claim(engine, "leased", 8, GrpoGroup(4), 30.0)
    claim(engine, "ranks", 2, RankAware(dp_rank=1, batch_index=0), 30.0)
    balanced = SeqlenBalanced(dp_rank=0, batch_index=0, dp_size=2, weight="at")
    assert isinstance(claim(engine, "ranks", 1, balanced), Claimed)
    assert isinstance(first, Claimed)
    assert first.lease is not None
    ack(engine, first.claim_id, Ack(first.lease.token, [0], [1], [(2, "bad")]))
    delete(engine, "p", Selector(indexes=[20, 21]))
    gone = plan_clear(engine, "p", ClearRequest(Selector(keys=["k22"]), with_tombstones=True))
    commit_clear(engine, gone.clear.clear_id)
    plan_clear(engine, "p", ClearRequest(Selector(keys=["k30", "k31"])))
    add(engine, "q", 3)
    delete_partition(engine, "q", None)
    add(engine, "s")
    seal_partition(engine, "s")
    engine.keep_reply(Kept("key", b"digest", 200, b"{}", None), engine.revision)
    book.take(engine)


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
def engine(book: Book) -> Engine:
    engine = new_engine()
    lived(engine, book)
    return engine


def from_image(data: bytes) -> Engine:
    engine = new_engine()
    restore(engine, data)
    return engine


def test_every_member_of_an_engine_is_state_or_known_not_to_be() -> None:
    assert {name.lstrip("_") for name in vars(new_engine())} == set(STATE) | NOT_STATE


def test_an_image_of_what_was_made_from_an_image_is_the_same_image(engine: Engine) -> None:
    data = image(engine)
    assert image(from_image(data)) == data


def test_an_image_of_what_was_made_from_the_journal_is_the_same_image(engine: Engine, book: Book) -> None:
    assert image(book.replayed()) == image(engine)


def test_a_lease_has_its_full_length_again() -> None:
    engine = new_engine()
    lived(engine, Book())
    assert isinstance(engine.clock, Clock)
    engine.clock.now += 29.0
    again = from_image(image(engine))
    expiry.begin_anew(again)
    assert again.leases.due() == 30.0
    assert [lease.deadline for lease in again.leases.open.values()] == [60.0, 30.0, 30.0]


def test_rows_with_a_time_revoked_cells_and_what_was_go_on_too() -> None:
    engine = new_engine()
    rows = add_keys(engine, "u", ["a", "b", "c", "d"], custom_meta=cells(1, 2, 3, 4), ttl_s=60.0)
    seen = engine.revision
    write(engine, "u", rows[:2], ["x"])
    revoke(engine, "u", Selector(rows[:1]), ("x",))
    patch_custom_meta(engine, "u", RowWrite(rows[1:2], custom_meta=cells(9)))
    delete(engine, "u", Selector(rows[2:3]))
    again = from_image(image(engine))
    for one in (engine, again):
        expiry.begin_anew(one)
        assert expiry.next_due(one) == 60.0
        assert isinstance(one.clock, Clock)
        one.clock.now = 60.0
        expiry.expire(one, 60.0)
        page = list_changes(one, "u", ChangesRequest(seen, where=parsed(("at", "<", 5))))
        assert ([line.key for line in page.lines], page.removed) == ([b'"a"'], [b'"b"', b'"c"', b'"d"'])
        write(one, "u", rows[:1], ["x"])
    assert image(again) == image(engine)


def test_it_goes_on_as_the_one_it_was_made_of(engine: Engine) -> None:
    again = from_image(image(engine))
    for one in (engine, again):
        one.token = lambda: "token"
        add_keys(one, "p", ["new"], group_ids=[3])
        write(one, "p", [46], ["x"])
        claim(one, "leased", 4, GrpoGroup(4), 30.0)
        claim(one, "plain", 5)
        delete(one, "p", Selector(keys=["new"]))
        write(one, "p", [5], {"r": Schema("int64", lengths=[7])}, {"r": cells(9)})
    assert image(again) == image(engine)


def test_equal_cells_are_one_object_again(engine: Engine) -> None:
    meta = from_image(image(engine)).partitions["p"].custom_meta
    assert meta is not None
    first, second = (meta[-1 - place] for place in (0, 1))
    assert first is second


def columns(partitions: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The columns that are written, then read, of so many partitions that are alike."""
    engine, seen = new_engine(), list[str]()
    for number in range(partitions):
        write(engine, f"p{number}", add_keys(engine, f"p{number}", ["a", "b"]), ["x", "y"])

    def told(kind: type, column: Any) -> Any:
        return lambda self, values: (seen.append(kind.__name__), column(self, values))[1]

    with monkeypatch.context() as patch:
        for kind in (ImageWriter, ImageReader):
            patch.setattr(kind, "column", told(kind, kind.column))
        from_image(image(engine))
    return seen


def test_the_steps_are_as_many_as_classes_and_members_however_many_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    assert columns(50, monkeypatch) == columns(2, monkeypatch)


def test_closed_leases_share_what_is_the_same_for_all_their_rows() -> None:
    engine = new_engine()
    write(engine, "p", add(engine, "p", 16), ["x"])
    for _ in range(2):
        taken = claim(engine, "leased", 8, lease_s=60.0)
        ack(engine, taken.claim_id, Ack(taken.lease.token, None, [], []))
    for one in (engine, from_image(image(engine))):
        first, second = one.leases.closed.values()
        assert (first.attempts is second.attempts, first.fate is second.fate) == (True, True)
        assert (first.attempts.tolist(), first.fate.tolist()) == ([1] * 8, [ACCEPTED] * 8)


def test_what_has_no_place_in_an_image_is_told(engine: Engine) -> None:
    engine.deleted["strange"] = Clock()  # type: ignore[assignment]
    with pytest.raises(TypeError, match="Clock"):
        image(engine)


@pytest.mark.parametrize("data", [msgspec.msgpack.encode([1, 2]), msgspec.msgpack.encode([])])
def test_bytes_of_another_version_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="parts"):
        restore(new_engine(), data)
