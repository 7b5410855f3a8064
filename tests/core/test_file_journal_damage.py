"""Damage to the file journal: every cut, every flip, lost and strange files. No history is silently another one.
Over 250 lines, since every test here starts from the same five entries in the same two segments.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.journal import BEFORE_FIRST, FileJournal, JournalDamaged
from core.journal.segment import ENTRY_HEADER_BYTES, SEGMENT_HEADER_BYTES, encode_entry, encode_segment_header
from tests.contracts.journal_disks import QUICK_DISK
from tests.contracts.journal_suite import fill

PAYLOADS = [b"a", b"bb" * 10, b"ccc", b"", b"eeeee" * 4]
CLOSED, NEWEST = f"{1:020d}.segment", f"{4:020d}.segment"


@dataclass(frozen=True, slots=True)
class Opened:
    payloads: list[bytes]
    log: list[str]


def journal_in(folder: Path, log: list[str] | None = None) -> FileJournal:
    sink = (lambda message: None) if log is None else log.append
    return FileJournal(folder, segment_bytes=240, disk=QUICK_DISK, log=sink)


def opened(folder: Path) -> Opened | None:
    """What a start makes of the folder; None where it refuses."""
    log: list[str] = []
    with closing(journal_in(folder, log)) as journal:
        try:
            journal.open()
        except JournalDamaged as refusal:
            check_message(refusal)
            return None
        return Opened([entry.payload for entry in journal.read(None)], log)


def check_message(refusal: JournalDamaged) -> None:
    message = str(refusal)
    assert message.startswith(f"{refusal.file}, byte {refusal.offset}: ")
    assert message.count("\n") == 0


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Three entries in a closed segment, two in the newest; the head was written before these two."""
    folder = tmp_path_factory.mktemp("whole")
    with closing(journal_in(folder)) as journal:
        journal.open()
        fill(journal, PAYLOADS)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert sorted(files) == [CLOSED, NEWEST, "head", "lock"]
    return files


@pytest.fixture
def folder(whole: dict[str, bytes], tmp_path: Path) -> Path:
    return laid_out(tmp_path / "journal", whole)


def laid_out(folder: Path, files: dict[str, bytes]) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def ends(data: bytes, payloads: list[bytes]) -> Iterator[int]:
    """Where each entry of a segment ends, its header first."""
    end = SEGMENT_HEADER_BYTES
    yield end
    for payload in payloads:
        end += ENTRY_HEADER_BYTES + len(payload)
        yield end
    assert end == len(data)


def test_a_cut_of_the_newest_segment_gives_an_exact_prefix_and_says_so(whole: dict[str, bytes], tmp_path: Path) -> None:
    data = whole[NEWEST]
    boundaries = list(ends(data, PAYLOADS[3:]))
    for length in range(len(data) + 1):
        folder = laid_out(tmp_path / "journal", {**whole, NEWEST: data[:length]})
        found = opened(folder)
        if length < SEGMENT_HEADER_BYTES:
            assert found is None, length
            continue
        assert found is not None, length
        kept = 3 + sum(end <= length for end in boundaries[1:])
        assert found.payloads == PAYLOADS[:kept], length
        assert len(found.log) == (length not in boundaries), length
        again = opened(folder)
        assert again == Opened(PAYLOADS[:kept], []), "a cut is made once, and leaves a sound journal"


@pytest.mark.parametrize("name", [CLOSED, "head"])
def test_a_cut_of_any_other_file_is_refused(whole: dict[str, bytes], tmp_path: Path, name: str) -> None:
    for length in range(len(whole[name])):
        assert opened(laid_out(tmp_path / "journal", {**whole, name: whole[name][:length]})) is None, length


@pytest.mark.parametrize("name", [CLOSED, NEWEST, "head", "lock"])
def test_a_flip_of_any_byte_is_refused_or_costs_the_last_entry_alone(
    whole: dict[str, bytes], tmp_path: Path, name: str
) -> None:
    data = whole[name]
    last_entry = list(ends(data, PAYLOADS[3:]))[-2] if name == NEWEST else len(data)
    for offset in range(len(data)):
        for mask in (0x01, 0xFF):
            flipped = bytearray(data)
            flipped[offset] ^= mask
            found = opened(laid_out(tmp_path / "journal", {**whole, name: bytes(flipped)}))
            if name == "lock":
                assert found == Opened(PAYLOADS, []), "nothing depends on what the lock file says"
            elif offset < last_entry:
                assert found is None, (offset, mask)
            else:
                assert found is not None, (offset, mask)
                assert found.payloads == PAYLOADS[:-1], (offset, mask)
                assert len(found.log) == 1, (offset, mask)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_splice_gives_a_prefix_or_a_refusal(whole: dict[str, bytes], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([CLOSED, NEWEST, "head"]))
    before = whole[name]
    start = data.draw(st.integers(0, len(before)))
    stop = data.draw(st.integers(start, len(before)))
    junk = data.draw(st.one_of(st.binary(max_size=80), st.just(b"\0" * (stop - start)), st.just(before[:stop])))
    spliced = before[:start] + junk + before[stop:]
    with tempfile.TemporaryDirectory() as parent:
        found = opened(laid_out(Path(parent) / "journal", {**whole, name: spliced}))
    if found is not None:
        assert found.payloads == PAYLOADS[: len(found.payloads)]
        whole_again = found.payloads == PAYLOADS
        assert whole_again or found.log or before.startswith(spliced), "only a clean cut leaves no trace to tell of"


def test_the_message_of_a_cut_names_file_offset_and_entry(folder: Path, whole: dict[str, bytes]) -> None:
    (folder / NEWEST).write_bytes(whole[NEWEST][:-3])
    found = opened(folder)
    assert found is not None
    start = SEGMENT_HEADER_BYTES + ENTRY_HEADER_BYTES
    place = f"{folder / NEWEST}, byte {start}"
    size = ENTRY_HEADER_BYTES + 17
    assert found.log == [f"{place}: entry 1-5 is cut short; its {size} bytes are cut, the journal ends with entry 1-4"]


def test_a_cut_is_a_warning_unless_told_where_to_go(
    folder: Path, whole: dict[str, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    (folder / NEWEST).write_bytes(whole[NEWEST][:-3])
    with closing(FileJournal(folder)) as journal:
        journal.open()
    assert [(record.levelname, "is cut short" in record.message) for record in caplog.records] == [("WARNING", True)]


def test_a_cut_is_followed_by_a_new_entry_of_a_new_term(folder: Path, whole: dict[str, bytes]) -> None:
    (folder / NEWEST).write_bytes(whole[NEWEST][:-3])
    with closing(journal_in(folder)) as journal:
        assert journal.open() == 2
        *_, last = journal.read(None)
        appended = journal.append(last.id, b"again")
        assert str(appended.last) == "2-5"
    assert opened(folder) == Opened([*PAYLOADS[:-1], b"again"], [])


@pytest.mark.parametrize("torn", [False, True])
def test_more_than_one_entry_that_was_safe_may_not_be_gone(folder: Path, whole: dict[str, bytes], torn: bool) -> None:
    """An opening writes down what it found, so that a later one misses it."""
    assert opened(folder) == Opened(PAYLOADS, [])
    (folder / NEWEST).write_bytes(whole[NEWEST][: SEGMENT_HEADER_BYTES + (1 if torn else 0)])
    with pytest.raises(JournalDamaged, match=r"ends after entry 1-3, but entry 1-5 was on disk"):
        journal_in(folder).open()


def test_two_damaged_entries_at_the_end_are_no_torn_write(folder: Path, whole: dict[str, bytes]) -> None:
    hurt = bytearray(whole[NEWEST])
    for end in list(ends(whole[NEWEST], PAYLOADS[3:]))[:-1]:
        hurt[end + 6] ^= 0xFF
    (folder / NEWEST).write_bytes(hurt)
    with pytest.raises(JournalDamaged, match="more entries follow"):
        journal_in(folder).open()


@pytest.mark.parametrize("name", [CLOSED, NEWEST, "head"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(JournalDamaged, match=f"{folder / name}, byte 0: this (segment|file) is missing"):
        journal_in(folder).open()


def test_a_missing_segment_in_the_middle(tmp_path: Path) -> None:
    with closing(journal_in(tmp_path)) as journal:
        journal.open()
        fill(journal, [b"x" * 100] * 4)
    middle = sorted(tmp_path.glob("*.segment"))[1]
    middle.unlink()
    with pytest.raises(JournalDamaged, match="goes on after entry 1-2, but the one before it ends with 1-1: a segment"):
        journal_in(tmp_path).open()


def test_segments_gone_but_for_the_head_is_no_new_journal(folder: Path) -> None:
    for path in folder.glob("*.segment"):
        path.unlink()
    assert opened(folder) is None


@pytest.mark.parametrize("name", ["notes.txt", "1.segment", f"{9:020d}.segment.bak", "head~", ".hidden"])
def test_a_foreign_file_is_named(folder: Path, name: str) -> None:
    (folder / name).touch()
    with pytest.raises(JournalDamaged, match="not of a journal; move it out of the folder") as refusal:
        journal_in(folder).open()
    assert refusal.value.file == folder / name


def test_a_segment_of_another_name_or_journal_is_refused(folder: Path, whole: dict[str, bytes]) -> None:
    (folder / f"{6:020d}.segment").write_bytes(whole[NEWEST])
    with pytest.raises(JournalDamaged, match="named for entry 6, but its header says it starts with 4"):
        journal_in(folder).open()


@pytest.mark.parametrize("name", [CLOSED, NEWEST, "head"])
def test_a_newer_format_is_refused_with_advice(folder: Path, name: str) -> None:
    data = bytearray((folder / name).read_bytes())
    data[8:12] = (3).to_bytes(4, "little")
    (folder / name).write_bytes(data)
    with pytest.raises(JournalDamaged, match=r"format 3 is newer than 2.*start the version that wrote it") as refusal:
        journal_in(folder).open()
    assert (refusal.value.file, refusal.value.offset) == (folder / name, 8)


def test_a_sound_entry_out_of_the_chain_is_never_cut(folder: Path, whole: dict[str, bytes]) -> None:
    """It was written whole, so it is no torn write, even at the very end."""
    with closing(journal_in(folder)) as journal:
        journal.open()
        entries = list(journal.read(None))
    (folder / NEWEST).write_bytes(whole[NEWEST] + encode_entry(entries[3]))
    with pytest.raises(JournalDamaged, match="entry 1-4 follows 1-3, but is found after 1-5"):
        journal_in(folder).open()


def test_an_entry_inside_a_torn_payload_is_no_entry(tmp_path: Path) -> None:
    """Someone may well store the bytes of a journal in a journal."""
    with closing(journal_in(tmp_path)) as journal:
        journal.open()
        last = fill(journal, [b"first"])
        (first,) = journal.read(None)
        fill(journal, [encode_entry(first) * 2 + b"!"], last)
    newest = max(tmp_path.glob("*.segment"))
    newest.write_bytes(newest.read_bytes()[:-1])
    found = opened(tmp_path)
    assert found is not None
    assert found.payloads == [b"first"]


def test_what_a_crash_leaves_while_making_files_is_no_damage(folder: Path, whole: dict[str, bytes]) -> None:
    (folder / "head.new").write_bytes(whole["head"][:7])
    (folder / f"{6:020d}.segment.new").write_bytes(b"")
    last = opened(folder)
    assert last == Opened(PAYLOADS, [])
    assert not list(folder.glob("*.new"))


def test_a_rotation_that_was_interrupted_is_taken_up(folder: Path) -> None:
    with closing(journal_in(folder)) as journal:
        journal.open()
        *_, last = journal.read(None)
        (folder / f"{6:020d}.segment").write_bytes(encode_segment_header(journal._journal, last.id))
    with closing(journal_in(folder)) as journal:
        journal.open()
        fill(journal, [b"on"], last.id)
    assert opened(folder) == Opened([*PAYLOADS, b"on"], [])


def test_damage_met_while_reading_is_refused_too(folder: Path, whole: dict[str, bytes]) -> None:
    with closing(journal_in(folder)) as journal:
        journal.open()
        hurt = bytearray(whole[CLOSED])
        hurt[-1] ^= 1
        (folder / CLOSED).write_bytes(hurt)
        entries = journal.read(BEFORE_FIRST)
        assert [next(entries).payload, next(entries).payload] == PAYLOADS[:2]
        with pytest.raises(JournalDamaged, match="entry 1-3 is not what its checksum says"):
            next(entries)
