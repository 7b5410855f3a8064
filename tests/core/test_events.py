"""Events are the journal's format: each comes back from its bytes as it was, and has its place in the engine's table.

The bytes of one entry are pinned: where they no longer mean the same, journals already written cannot be read.
"""

import base64
from typing import Any, get_args

import msgspec
import pytest

from core import events
from core.apply.table import EVENTS
from core.arrays import pack, unpack
from core.engine import Engine
from core.events import AnyEvent, Change, Declared, Event, Limits, Settings
from core.operations.checkpoints import begin_history, image_of, restore
from core.operations.claim import Claimed, ClaimRequest, claim_now
from core.operations.clears import ClearRequest, abort_clear, commit_clear, plan_clear
from core.operations.consumption import reset_consumption
from core.operations.delete import delete
from core.operations.expiry import expire
from core.operations.leases import Ack, ack, extend, release_worker
from core.operations.partitions import delete_partition, patch_partition, put_partition, seal_partition
from core.operations.produce import RowWrite, patch_backend_meta, patch_custom_meta, produce
from core.operations.revoke import revoke
from core.reading.batch import View
from core.reading.selectors import Selector
from core.samplers import Sequential
from core.samplers.rank_aware import RankAware
from core.snapshot.checkpoint_file import looked_through
from core.state.cells.json_cells import Const
from core.state.cells.signatures import FieldSignature, to_bytes
from tests.core.world import OBJECT, TENSOR, Book, Schema, add, add_keys, new_engine
from tests.model.compare import dump

INDEXES = pack(unpack(b"\x00" * 8 + b"\xff" * 7 + b"\x7f"))
FORMS = [
    to_bytes([FieldSignature("f", "tensor", "int64", False, 1)]),
    to_bytes([FieldSignature("f", "tensor", "int64", True, 1)]),
    to_bytes([FieldSignature("o", "object", None, False, None)]),
]
# New ones go to the end: the first fifteen are pinned below.
SAMPLES: list[AnyEvent] = [
    events.PartitionMade("p", 1.5),
    events.PartitionSet("p", Settings(4, None, 5, (Declared("f", "tensor", "int64", True, (1, 2)),))),
    events.PartitionSet("p", Settings(None, 2**31, 1, (Declared("o", "object", None, False, None),))),
    events.PartitionDeleted("p/\u00e9"),
    events.Inserted("p", 2**62, 65_536, None),
    events.Inserted("p", 0, 2, [b'"a"', b'"\xc3\xa9"']),
    events.Grouped("p", INDEXES, [b'"7"', b"7"]),
    events.Produced("p", INDEXES, FORMS[0], b"\4\0\0\0", [b"null"]),
    events.Produced("p", INDEXES, FORMS[1], b"\0" * 8, [[b"1", b"{}"]]),
    events.Produced("p", INDEXES, FORMS[2], b"", [b'{"a":1}']),
    events.CustomMetaSet("p", INDEXES, [b"{}", b'{"a":[1,2.5]}']),
    events.BackendMetaSet("p", INDEXES, {"f": b"null", "o": [b"1", b"2"]}),
    events.Cleared("p", INDEXES),
    events.Consumed("p", "task", INDEXES),
    events.Reset("p", "task"),
    events.Limited("p", Limits(None, 2**40, 5)),
    events.Sealed("p", 512),
    events.Leased("p", "task", INDEXES, 2**40, "token", None, 0.5, 8),
    events.Leased("p", "task", INDEXES, 3, "token", "w", 600.0, 1),
    events.Settled("p", 3, INDEXES, b"", INDEXES, ["empty", "max-attempts"], b"", is_lost=True),
    events.LeasesEnded("p", "task", INDEXES, INDEXES, b"", "max-attempts"),
    events.Extended("p", 3, 86_400.0),
    events.ClearPlanned("p", 2**40, INDEXES, True, 1.5),
    events.ClearCommitted("p", 2**40),
    events.ClearAborted("p", 9),
    events.Revoked("p", INDEXES, ["f", "o"]),
    events.Timed("p", INDEXES, 0.25),
    events.Expired("p", INDEXES),
    events.Allotted("p", "task", "rank_aware:0:1", events.ShareTerms(("f",), 2, "explicit", b"{}"), [INDEXES, b""]),
    events.Consumed("p", "task", b"", 2),
    events.Begun("", "name"),
    events.Restored("", b"image"),
]


def all_types(base: type) -> set[type]:
    return {base, *(kind for sub in base.__subclasses__() for kind in all_types(sub))} - {Event}


def restored(change: Change) -> Change:
    (back,) = msgspec.msgpack.decode(msgspec.msgpack.encode([change]), type=list[Change])
    return back


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: type(event).__name__)
def test_an_event_comes_back_as_it_was(event: AnyEvent) -> None:
    assert restored(Change(7, [event])) == Change(7, [event])


def test_several_events_of_one_call_come_back_in_order() -> None:
    assert restored(Change(2**40, SAMPLES)) == Change(2**40, SAMPLES)


def test_every_type_is_in_the_union_in_the_engines_table_and_in_these_tests() -> None:
    types = all_types(Event)
    assert types == set(get_args(AnyEvent))
    assert types == {type(event) for event in SAMPLES}
    assert types == EVENTS.keys()


def life() -> Engine:
    """A partition's life in which each type of event happens."""
    engine = new_engine()
    put_partition(engine, "p", 4, None, None, {"f": Schema("int64")})
    keys = add_keys(engine, "p", ["a", "b"], group_ids=["g", 7])
    row = RowWrite(keys, custom_meta=Const(b'{"v":1}'))
    produce(engine, "p", row, False, {"f": TENSOR, "o": OBJECT}, {"f": [b"1", b"2"]})
    produce(engine, "p", RowWrite(keys), False, {"f": Schema("int64", lengths=[3, 5])}, {})
    patch_custom_meta(engine, "p", RowWrite(keys[:1], custom_meta=[b'{"v":null}']))
    patch_backend_meta(engine, "p", RowWrite(keys[1:]), {"o": Const(b'"moved"')})
    assert isinstance(claim_now(engine, "p", ClaimRequest("t", ("f",), 2, 1, 0, Sequential(), View())), Claimed)
    reset_consumption(engine, "p", "t")
    patch_partition(engine, "p", None, 8, None)
    leased = claim_now(engine, "p", ClaimRequest("t", ("f",), 2, 1, 0, Sequential(), View(), 5.0))
    assert isinstance(leased, Claimed)
    assert leased.lease is not None
    extend(engine, leased.claim_id, leased.lease.token, 9.0)
    ack(engine, leased.claim_id, Ack(leased.lease.token, keys[:1], (), [(keys[1], "empty")]))
    revoke(engine, "p", Selector(indexes=keys), ("o",))
    first = RankAware(dp_rank=0, batch_index=0)
    assert isinstance(claim_now(engine, "p", ClaimRequest("u", ("f",), 2, 1, 0, first, View(), 5.0)), Claimed)
    assert isinstance(
        claim_now(engine, "p", ClaimRequest("v", ("f",), 2, 1, 0, Sequential(), View(), 5.0, "w")), Claimed
    )
    release_worker(engine, "w")
    seal_partition(engine, "p")
    delete(engine, "p", Selector(indexes=keys[:1]))
    for close in (abort_clear, commit_clear):
        close(engine, plan_clear(engine, "p", ClearRequest(Selector(indexes=keys))).clear.clear_id)
    add(engine, "gone")
    add(engine, "gone", ttl_s=5.0)
    expire(engine, 5.0)
    add(engine, "gone", 2, ttl_s=5.0)
    delete_partition(engine, "gone", None)
    begin_history(engine)
    restore(engine, looked_through(image_of(engine)[1]), unproduced=False)
    return engine


def test_a_life_is_replayed_from_its_bytes_alone() -> None:
    engine, book = life(), Book()
    assert {type(event) for change in engine.log for event in change.events} == all_types(Event)
    assert [change.revision for change in engine.log] == list(range(1, engine.revision + 1))
    book.take(engine)
    assert dump(book.replayed()) == dump(engine)


PINNED = """
kZIJn5OtUGFydGl0aW9uTWFkZaFwyz/4AAAAAAAAk6xQYXJ0aXRpb25TZXShcJQEwAWRlaFmpnRlbnNvcqVpbnQ2NMOSAQKTrFBhcnRpdGlvblNldKFwlMDO
gAAAAAGRlaFvpm9iamVjdMDCwJKwUGFydGl0aW9uRGVsZXRlZKRwL8OplahJbnNlcnRlZKFwz0AAAAAAAAAAzgABAADAlahJbnNlcnRlZKFwAAKSxAMiYSLE
BCLDqSKUp0dyb3VwZWShcMQQAAAAAAAAAAD/////////f5LEAyI3IsQBN5aoUHJvZHVjZWShcMQQAAAAAAAAAAD/////////f8QTkZWhZqZ0ZW5zb3KlaW50
NjTCAcQEBAAAAJHEBG51bGyWqFByb2R1Y2VkoXDEEAAAAAAAAAAA/////////3/EE5GVoWamdGVuc29ypWludDY0wwHECAAAAAAAAAAAkZLEATHEAnt9lqhQ
cm9kdWNlZKFwxBAAAAAAAAAAAP////////9/xA6RlaFvpm9iamVjdMDCwMQAkcQHeyJhIjoxfZStQ3VzdG9tTWV0YVNldKFwxBAAAAAAAAAAAP////////9/
ksQCe33EDXsiYSI6WzEsMi41XX2UrkJhY2tlbmRNZXRhU2V0oXDEEAAAAAAAAAAA/////////3+CoWbEBG51bGyhb5LEATHEATKTp0NsZWFyZWShcMQQAAAA
AAAAAAD/////////f5SoQ29uc3VtZWShcKR0YXNrxBAAAAAAAAAAAP////////9/k6VSZXNldKFwpHRhc2s=
"""


def test_an_entry_that_an_older_journal_holds_still_means_the_same() -> None:
    (change,) = msgspec.msgpack.decode(base64.b64decode(PINNED), type=list[Change])
    assert change.revision == 9
    assert change.events == SAMPLES[: len(change.events)]
    assert len(change.events) == 15


@pytest.mark.parametrize("damaged", [[9], [9, [["Unknown", "p"]]], [9, [["Cleared", "p"]]], [9, [["Reset", 1, "t"]]]])
def test_an_entry_of_another_form_is_refused_and_not_guessed_at(damaged: list[Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode([damaged]), type=list[Change])
