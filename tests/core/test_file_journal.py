"""The file journal: its names, its lock, its bytes, and a disk that fails it. Damage and crashes: other files."""

import errno
import os
import subprocess
import sys
from contextlib import closing
from getpass import getuser
from pathlib import Path

import pytest

from core.compression import MAGIC
from core.journal import (
    BEFORE_FIRST,
    EntryId,
    FileJournal,
    JournalDamaged,
    JournalLocked,
    JournalUnavailable,
    MemoryJournal,
    Outcome,
    journal_from_url,
)
from core.journal.folder import Disk
from core.journal.segment import ENTRY_HEADER_BYTES, MOST_PACKED, SEGMENT_HEADER_BYTES, VERSION
from tests.contracts.journal_disks import QUICK_DISK, FaultyDisk
from tests.contracts.journal_suite import fill

ROOT = Path(__file__).parents[2]
HOLDER = """
import sys
from pathlib import Path
from core.journal import FileJournal
FileJournal(Path(sys.argv[1])).open()
print("open", flush=True)
sys.stdin.read()
"""


def payloads(folder: Path) -> list[bytes]:
    with closing(FileJournal(folder)) as journal:
        journal.open()
        return [entry.payload for entry in journal.read(None)]


def test_an_append_is_one_write_and_one_sync(tmp_path: Path) -> None:
    faulty = FaultyDisk()
    with closing(FileJournal(tmp_path, disk=faulty.disk())) as journal:
        journal.open()
        faulty.calls.clear()
        fill(journal, [b"x" * 100_000] * 3)
    assert faulty.calls == ["write", "fdatasync"] * 3


def test_opening_and_rotating_sync_each_new_file_and_its_folder(tmp_path: Path) -> None:
    faulty = FaultyDisk()
    one_file = ["write", "fsync", "fsync"]
    with closing(FileJournal(tmp_path / "a" / "b", segment_bytes=100, disk=faulty.disk())) as journal:
        journal.open()
        # Two folders made; first segment; what the last entry may still lack; head.
        assert faulty.calls == ["fsync", "fsync", *one_file, "write", "fdatasync", *one_file]
        faulty.calls.clear()
        fill(journal, [b"x" * 60] * 2)
        assert faulty.calls == ["write", "fdatasync", *one_file, *one_file, "write", "fdatasync"]


def test_segments_are_named_by_first_seq_and_never_change_once_closed(tmp_path: Path) -> None:
    size = SEGMENT_HEADER_BYTES + 2 * (ENTRY_HEADER_BYTES + 10)
    with closing(FileJournal(tmp_path, segment_bytes=size, disk=QUICK_DISK)) as journal:
        journal.open()
        last = fill(journal, [b"0123456789"] * 4)
        closed = (tmp_path / f"{1:020d}.segment").read_bytes()
        last = fill(journal, [b"longer than a whole segment" * 10, b"x"], last)
        assert [entry.payload for entry in journal.read(EntryId(1, 3))][-1] == b"x"
    assert len(closed) == size
    assert (tmp_path / f"{1:020d}.segment").read_bytes() == closed
    names = [f"{first:020d}.segment" for first in (1, 3, 5, 6)]
    assert sorted(path.name for path in tmp_path.iterdir()) == [*names, "head", "lock"]


def test_the_format_is_written_down_byte_for_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails the format has changed: raise VERSION and keep reading the old one."""
    monkeypatch.setattr("core.journal.file.os.urandom", lambda size: bytes(size - 1) + b"\7")
    with closing(FileJournal(tmp_path)) as journal:
        journal.open()
        fill(journal, WRITTEN)
    assert VERSION == 2
    assert (tmp_path / f"{1:020d}.segment").read_bytes() == bytes.fromhex(FORMAT_SEGMENT)
    assert (tmp_path / "head").read_bytes() == bytes.fromhex(FORMAT_HEAD)


def test_a_folder_of_format_1_is_read_and_written_on(tmp_path: Path) -> None:
    (tmp_path / f"{1:020d}.segment").write_bytes(bytes.fromhex(FORMAT_1_SEGMENT))
    (tmp_path / "head").write_bytes(bytes.fromhex(FORMAT_1_HEAD))
    with closing(FileJournal(tmp_path)) as journal:
        journal.open()
        fill(journal, WRITTEN[2:], EntryId(1, 2))
    assert payloads(tmp_path) == WRITTEN


def test_a_large_payload_is_stored_compressed_and_comes_back_as_it_was(tmp_path: Path) -> None:
    written = [b'{"n":%d}' % number * 1000 for number in range(5)] + [os.urandom(5000), b"x" * (MOST_PACKED + 1)]
    with closing(FileJournal(tmp_path, segment_bytes=2**30)) as journal:
        journal.open()
        last = fill(journal, written[:5])
        stored = (tmp_path / f"{1:020d}.segment").stat().st_size
        fill(journal, written[5:], last)
    assert stored < sum(map(len, written[:5])) / 50
    assert payloads(tmp_path) == written


def test_what_is_compressed_and_damaged_is_told(tmp_path: Path) -> None:
    with closing(FileJournal(tmp_path)) as journal:
        journal.open()
        fill(journal, WRITTEN * 2)
    path = tmp_path / f"{1:020d}.segment"
    whole = path.read_bytes()
    at = whole.index(MAGIC)
    for offset in range(at - ENTRY_HEADER_BYTES, at + 20):
        path.write_bytes(whole[:offset] + bytes([whole[offset] ^ 1]) + whole[offset + 1 :])
        with pytest.raises(JournalDamaged):
            payloads(tmp_path)


def test_a_segment_is_no_longer_than_the_newest_snapshot_but_for_the_first(tmp_path: Path) -> None:
    """So that a start has little to replay, and a large state is not written down again for little."""
    mib = 2**20
    with closing(FileJournal(tmp_path, disk=QUICK_DISK)) as journal:
        journal.open()
        last = fill(journal, [bytes(mib)] * 32)
        journal.save(journal.closed(), os.urandom(40 * mib))
        journal.tidy()
        last = fill(journal, [bytes(mib)] * 39, last)
        journal.save(journal.closed(), os.urandom(80 * mib))
        journal.tidy()
    with closing(FileJournal(tmp_path, disk=QUICK_DISK)) as journal:
        journal.open()
        fill(journal, [bytes(mib)] * 64, last)
    assert [int(path.name[:20]) for path in sorted(tmp_path.glob("*.segment"))] == [32, 71, 134]


WRITTEN = [b"hi", b"{}", b"0123456789" * 200]
FORMAT_SEGMENT = """
    f87365676d656e74 02000000 0700000000000000 0000000000000000 0000000000000000 9e81d441
    f86a65ff 02000000 0100000000000000 0100000000000000 0000000000000000 0000000000000000 ac2a93d8 0131adb8 6869
    f86a65ff 02000000 0100000000000000 0200000000000000 0100000000000000 0100000000000000 43bfa6a3 780093547b7d
    f86a65ff 1b000080 0100000000000000 0300000000000000 0100000000000000 0200000000000000 5b0eaf1d 2c184208
    28b52ffd60d0068d000050303132333435363738390100c3f72f48
"""
FORMAT_HEAD = """
    f8686561640d0aff 02000000 0700000000000000 0100000000000000 0100000000000000 0100000000000000
    0000000000000000 0000000000000000 4722e59c
"""
FORMAT_1_SEGMENT = """
    f87365676d656e74 01000000 0700000000000000 0000000000000000 0000000000000000 b9860a43
    f86a65ff 02000000 0100000000000000 0100000000000000 0000000000000000 0000000000000000 ac2a93d8 0131adb8 6869
    f86a65ff 02000000 0100000000000000 0200000000000000 0100000000000000 0100000000000000 43bfa6a3 780093547b7d
"""
FORMAT_1_HEAD = """
    f8686561640d0aff 01000000 0700000000000000 0100000000000000 0100000000000000 0100000000000000
    0000000000000000 0000000000000000 5026b026
"""


def test_short_writes_are_finished(tmp_path: Path) -> None:
    sevens = Disk(write=lambda fd, data, offset: os.pwrite(fd, data[:7], offset))
    with closing(FileJournal(tmp_path, segment_bytes=200, disk=sevens)) as journal:
        journal.open()
        fill(journal, [b"a" * 50, b"b" * 500, b""])
    assert payloads(tmp_path) == [b"a" * 50, b"b" * 500, b""]


def test_a_disk_that_takes_no_more_is_an_error_not_a_loop(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path, disk=Disk(write=lambda fd, data, offset: 0))
    with pytest.raises(JournalUnavailable, match="takes no more"):
        journal.open()


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO], ids=errno.errorcode.get)
@pytest.mark.parametrize(("call", "taken"), [(1, 0), (1, 20), (1, 10**6), (2, 0)])
def test_after_a_failed_append_it_is_broken_for_good(tmp_path: Path, error: int, call: int, taken: int) -> None:
    faulty = FaultyDisk(error=error, taken=taken)
    with closing(FileJournal(tmp_path, disk=faulty.disk())) as journal:
        journal.open()
        last = fill(journal, [b"kept"])
        faulty.calls.clear()
        faulty.fail_at = call
        with pytest.raises(JournalUnavailable, match=os.strerror(error)) as failure:
            journal.append(last, b"unknown")
        assert isinstance(failure.value.__cause__, OSError)
        assert str(tmp_path) in str(failure.value)
        done = list(faulty.calls)
        for _ in range(2):
            with pytest.raises(JournalUnavailable, match="broken"):
                journal.append(last, b"never")
        assert faulty.calls == done, "nothing is tried again"
        assert [entry.payload for entry in journal.read(None)] == [b"kept"]
    assert payloads(tmp_path) in ([b"kept"], [b"kept", b"unknown"])


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_append_left_by_any_way_breaks_it(tmp_path: Path, error: type[BaseException]) -> None:
    def leave(fd: int) -> None:
        raise error

    with closing(FileJournal(tmp_path)) as journal:
        journal.open()
        journal._disk = Disk(fdatasync=leave)
        with pytest.raises(error):
            journal.append(BEFORE_FIRST, b"")
        with pytest.raises(JournalUnavailable, match="broken"):
            journal.append(BEFORE_FIRST, b"")


def test_a_payload_too_long_for_the_format_breaks_nothing(tmp_path: Path) -> None:
    class Huge(bytes):
        def __len__(self) -> int:
            return 2**32

    with closing(FileJournal(tmp_path)) as journal:
        journal.open()
        with pytest.raises(ValueError, match="2 GiB"):
            journal.append(BEFORE_FIRST, Huge())
        assert journal.append(BEFORE_FIRST, b"fits").outcome is Outcome.OK


def test_another_process_is_refused_with_folder_and_pid(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"open\n"
        with pytest.raises(JournalLocked) as refusal:
            FileJournal(tmp_path).open()
        assert str(refusal.value) == f"the journal in {tmp_path} is in use by process {holder.pid}"
        holder.kill()
    with closing(FileJournal(tmp_path)) as journal:
        assert journal.open() == 2


def test_a_refused_open_leaves_it_free(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    journal = FileJournal(tmp_path)
    with pytest.raises(JournalDamaged, match=r"mine\.txt"):
        journal.open()
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"], "not even a lock file is left"
    (tmp_path / "mine.txt").unlink()
    assert journal.open() == 1
    journal.close()


def test_a_folder_that_cannot_be_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(JournalUnavailable, match=str(folder)):
            FileJournal(folder).open()


def test_removing_the_folder_fences_its_writer(tmp_path: Path) -> None:
    """Its files would still take bytes, and lose them at the end: no such write may be acknowledged."""
    with closing(FileJournal(tmp_path / "journal")) as journal:
        journal.open()
        last = fill(journal, [b"x"])
        (tmp_path / "journal").rename(tmp_path / "moved")
        last = fill(journal, [b"moved, not gone"], last)
        for path in (tmp_path / "moved").iterdir():
            path.unlink()
        assert journal.append(last, b"gone").outcome is Outcome.FENCED


def test_a_writer_that_was_overtaken_leaves_the_folder_to_the_other(tmp_path: Path) -> None:
    with closing(FileJournal(tmp_path, segment_bytes=100)) as first, closing(FileJournal(tmp_path)) as second:
        first.open()
        last = fill(first, [b"x" * 60] * 3)
        (tmp_path / "lock").unlink()
        assert second.open() == 2
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        with pytest.raises(JournalUnavailable, match="fenced"):
            first.trim(last)
        assert first.append(last, b"late").outcome is Outcome.FENCED
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
        assert second.append(last, b"on").outcome is Outcome.OK


def test_urls(tmp_path: Path) -> None:
    assert isinstance(journal_from_url("memory:", tmp_path), MemoryJournal)
    for url, folder in {
        "file:///srv/journal": Path("/srv/journal"),
        "file:data/journal": tmp_path / "data/journal",
        "file:a%20b%3F": tmp_path / "a b?",
        "file:///caf%C3%A9": Path("/café"),
        "file:///café": Path("/café"),
        "file:/srv/a%20b": Path("/srv/a b"),
        "file://localhost/srv": Path("/srv"),
        "file://LocalHost/srv": Path("/srv"),
        "file:~/a%20b": Path.home() / "a b",
        "file:~": Path.home(),
        f"file:~{getuser()}/data": Path(f"~{getuser()}").expanduser() / "data",
        "file:%7E/data": tmp_path / "~" / "data",
        "file:./~/data": tmp_path / "~" / "data",
        "file:///~/data": Path("/~/data"),
    }.items():
        journal = journal_from_url(url, tmp_path)
        assert isinstance(journal, FileJournal)
        assert journal._folder.path == folder


@pytest.mark.parametrize(
    "url",
    [
        *("", "file", "file:", "file:/", "file://", "file:///", "file:////", "/srv/journal", "data"),
        *(
            "file://relative",
            "file://host/srv",
            "file:////srv",
            "file:~no-such-user/x",
            "sqlite:x",
            "FILE:x",
            "s3://b/x",
        ),
        *("file:a?sync=off", "file:a#b", "file:a%", "file:a%zz", "file:%ff", "file:a%00", "file:%2Fetc", "file:a\tb"),
        *("memory", "memory:x", "memory://", "memory:?"),
    ],
)
def test_any_other_url_is_refused_with_the_accepted_forms(url: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="file:///absolute/folder, file:relative/folder or memory:") as refusal:
        journal_from_url(url, tmp_path)
    assert type(refusal.value) is ValueError
    assert "\n" not in str(refusal.value)
