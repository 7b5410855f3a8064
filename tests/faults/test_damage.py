"""Any damage to a data folder with snapshots and trimmed segments: a start gives an exact state or refuses, with file,
byte and advice; never another state, never an empty one; and `--verify` tells of it. TEST_LONG=1: every byte of images.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from core.events import Change, Restored
from core.journal import Entry, EntryId, segment
from core.journal.segment import (
    SEGMENT_HEADER_BYTES,
    SNAPSHOT_HEADER_BYTES,
    UPGRADE,
    Damage,
    decode_snapshot,
    encode_entry,
    encode_snapshot_header,
)

from .history import CLOSED, ENTRIES, FILES, NEWER, NEWEST, OLDER, History, contents, laid_out, lived, started, verified
from .judging import flipped, judge

LONG = os.environ.get("TEST_LONG") == "1"
IMAGE_STEP = 1 if LONG else 64


def places(history: History, name: str) -> Iterator[int]:
    """Every byte, but of the image in a snapshot (see the pure test below) only some."""
    dense = SNAPSHOT_HEADER_BYTES if name.endswith("snapshot") else len(history.files[name])
    yield from range(dense)
    yield from range(dense, len(history.files[name]), IMAGE_STEP)


def last_entry(data: bytes) -> int:
    """Where the last entry of a segment begins."""
    return data.rindex(segment.MARK)


@pytest.mark.parametrize("name", FILES)
def test_a_flip_of_any_byte(history: History, folder: Path, name: str) -> None:
    data = history.files[name]
    for offset in places(history, name):
        found = judge(history, folder, {**history.files, name: flipped(data, offset)}, ENTRIES - 1)
        if name == OLDER:
            assert found == ENTRIES, (offset, "the newer one holds the same")
        else:
            assert found == (ENTRIES - 1 if name == NEWEST and offset >= last_entry(data) else None), offset


@pytest.mark.parametrize("name", [OLDER, NEWER])
def test_no_flip_or_cut_of_a_snapshot_goes_unseen(history: History, name: str) -> None:
    data = history.files[name]
    for offset in range(len(data)):
        for damaged in (flipped(data, offset), data[:offset]):
            with pytest.raises(Damage):
                decode_snapshot(damaged, history.journal)
    with pytest.raises(Damage):
        decode_snapshot(data + b"\0", history.journal)


@pytest.mark.parametrize("name", ["head", CLOSED, OLDER, NEWER])
def test_a_cut_at_any_length(history: History, folder: Path, name: str) -> None:
    for length in places(history, name):
        found = judge(history, folder, {**history.files, name: history.files[name][:length]}, ENTRIES)
        assert found == (ENTRIES if name == OLDER else None), length


def test_a_cut_of_the_newest_segment_gives_an_exact_prefix(history: History, folder: Path) -> None:
    data = history.files[NEWEST]
    ends = [match.start() for match in re.finditer(re.escape(segment.MARK), data)] + [len(data)]
    assert ends[0] == SEGMENT_HEADER_BYTES
    for length in range(len(data)):
        files, kept = {**history.files, NEWEST: data[:length]}, 9 + sum(end <= length for end in ends[1:])
        if length in ends[1:]:
            found = started(laid_out(folder, files))
            assert not isinstance(found, str)
            assert (found.seq, found.log, found.state) == (kept, [], history.states[kept]), (
                "no trace to tell of is left"
            )
            continue
        # The head knows that entry 10 was on disk: it may be torn, but not without a trace.
        starts = length > SEGMENT_HEADER_BYTES
        assert judge(history, folder, files, 9) == (kept if starts else None), length


@pytest.mark.parametrize("name", ["head", CLOSED, NEWEST])
def test_without_a_file_nothing_starts(history: History, folder: Path, name: str) -> None:
    assert judge(history, folder, {key: data for key, data in history.files.items() if key != name}, ENTRIES) is None


@pytest.mark.parametrize("name", [OLDER, NEWER, "lock"])
def test_without_a_file_that_holds_what_others_hold_the_state_is_the_same(
    history: History, folder: Path, name: str
) -> None:
    found = started(laid_out(folder, {key: data for key, data in history.files.items() if key != name}))
    assert not isinstance(found, str)
    assert (found.seq, found.state) == (ENTRIES, history.states[ENTRIES])


@pytest.mark.parametrize(
    "kinds", [("head", "segment"), ("segment",), ("head", "snapshot"), ("head", "segment", "4.snapshot")]
)
def test_what_is_left_of_a_history_is_no_new_journal(history: History, folder: Path, kinds: tuple[str, ...]) -> None:
    left = {name: data for name, data in history.files.items() if not name.endswith(kinds)}
    assert judge(history, folder, left, ENTRIES) is None
    assert set(contents(folder)) == set(left), "and nothing is begun beside it"


def test_without_its_snapshots_what_was_trimmed_is_missed(history: History, folder: Path) -> None:
    left = {name: data for name, data in history.files.items() if not name.endswith("snapshot")}
    status, told = verified(laid_out(folder, left))
    assert (status, started(folder)) == (1, told)
    assert f"{folder} starts with entry 5, and no snapshot of what came before is there: put the snapshots back" in told


def test_a_file_put_back_from_an_earlier_day(history: History, folder: Path) -> None:
    """A head that names a segment which was trimmed is refused; an older one that fits costs nothing."""
    tried = [(name, data) for name in FILES for data in history.earlier[name]]
    assert {name for name, _ in tried} == {"head", CLOSED, NEWEST}, "snapshots never change"
    for name, data in tried:
        files = {**history.files, name: data}
        found = started(laid_out(folder, files))
        if name == NEWEST and not isinstance(found, str):
            assert (found.seq, found.log) == (9 + data.count(segment.MARK), []), "a whole prefix, as after a clean cut"
            assert found.state == history.states[found.seq]
        elif name == "head" and not isinstance(found, str):
            assert found.state == history.states[ENTRIES]
        else:
            assert judge(history, folder, files, ENTRIES) is None


def snapshot_of(history: History, last: EntryId, image: bytes) -> dict[str, bytes]:
    return {f"{last.seq:020d}.snapshot": encode_snapshot_header(history.journal, last, image) + image}


def test_a_snapshot_under_the_name_of_another(history: History, folder: Path) -> None:
    assert judge(history, folder, {**history.files, NEWER: history.files[OLDER]}, ENTRIES) is None


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_another_journal_whose_ids_are_the_same(
    history: History, folder: Path, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    other = lived(tmp_path_factory.mktemp("other") / "journal")
    files = {**history.files, name: other.files[name]}
    assert judge(history, folder, files, ENTRIES) == (ENTRIES if name == OLDER else None)
    status, told = verified(folder)
    assert status == 1
    assert "of another journal" in told


@pytest.mark.parametrize(
    ("last", "image", "said"),
    [
        (EntryId(1, 40), None, "does not hold what comes after entry 1-40"),
        (EntryId(2, 9), None, "has no entry 2-9"),
        (EntryId(1, 9), b"\x07", UPGRADE),
        (EntryId(1, 9), msgspec.msgpack.encode([1, 2]), UPGRADE),
    ],
)
def test_a_snapshot_out_of_place_or_of_another_version(
    history: History, folder: Path, last: EntryId, image: bytes | None, said: str
) -> None:
    files = {**history.files, **snapshot_of(history, last, image or history.states[9])}
    status, told = verified(laid_out(folder, files))
    assert (status, started(folder)) == (1, told)
    assert said in told


def test_an_entry_of_another_version(history: History, folder: Path) -> None:
    strange = msgspec.msgpack.encode([[ENTRIES + 1, [["from tomorrow", 1]]]])
    entry = Entry(EntryId(1, ENTRIES + 1), EntryId(1, ENTRIES), strange)
    files = {**history.files, NEWEST: history.files[NEWEST] + encode_entry(entry)}
    status, told = verified(laid_out(folder, files))
    assert (status, started(folder)) == (1, told)
    assert re.match(rf"entry 1-{ENTRIES + 1} is not of this version \(.+\); {UPGRADE}$", told)


def test_a_restore_of_another_version(history: History, folder: Path) -> None:
    image = msgspec.msgpack.encode([["c", "Tomorrow"]])
    strange = msgspec.msgpack.encode([Change(ENTRIES + 1, [Restored("", image)])])
    entry = Entry(EntryId(1, ENTRIES + 1), EntryId(1, ENTRIES), strange)
    files = {**history.files, NEWEST: history.files[NEWEST] + encode_entry(entry)}
    status, told = verified(laid_out(folder, files))
    assert (status, started(folder)) == (1, told)
    assert re.match(rf"the restore in entry 1-{ENTRIES + 1} is not of this version \(.+\); {UPGRADE}$", told)


@pytest.mark.parametrize("name", ["notes.txt", "9.snapshot", f"{9:020d}.snapshot.bak", ".head.swp"])
def test_a_foreign_file(history: History, folder: Path, name: str) -> None:
    assert judge(history, folder, {**history.files, name: b""}, ENTRIES) is None


@pytest.mark.parametrize("name", FILES)
def test_a_newer_format_is_told_with_what_to_do(history: History, folder: Path, name: str) -> None:
    data = history.files[name]
    files = {**history.files, name: data[:8] + (segment.VERSION + 1).to_bytes(4, "little") + data[12:]}
    assert judge(history, folder, files, ENTRIES) == (ENTRIES if name == OLDER else None)
    status, told = verified(folder)
    assert (status, told.startswith(f"{folder / name}, byte 8: format 3"), told.endswith(UPGRADE)) == (1, True, True)
