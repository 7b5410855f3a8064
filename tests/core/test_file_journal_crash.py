"""The file journal through crashes: a writer killed at any moment, power cuts that drop what was not synced, and a
disk that fails at each of its calls. What was acknowledged is there; what was not is there whole or not at all."""

import errno
import os
import random
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from core.journal import BEFORE_FIRST, EntryId, EntryUnknown, FileJournal, JournalUnavailable, Outcome
from core.journal.folder import REAL_DISK, Disk
from core.journal.segment import ENTRY_HEADER_BYTES, encode_entry
from tests.contracts.journal_disks import FaultyDisk, ForgetfulDisk
from tests.contracts.journal_suite import fill

ROOT = Path(__file__).parents[2]
SEGMENT_BYTES = 4096
WRITER = """
import sys
from pathlib import Path
from core.journal import BEFORE_FIRST, FileJournal
journal = FileJournal(Path(sys.argv[1]), segment_bytes=int(sys.argv[2]), log=lambda message: None)
journal.open()
last = BEFORE_FIRST
for entry in journal.read(None):
    last = entry.id
while True:
    last = journal.append(last, b"%d," % (last.seq + 1) * ((last.seq + 1) % 50)).last
    print(last.seq, flush=True)
"""


def payload(seq: int) -> bytes:
    return b"%d," % seq * (seq % 50)


def history(folder: Path, disk: Disk = REAL_DISK) -> list[bytes]:
    """What a new opening finds. Its log is not looked at: a torn write is what these tests make."""
    with closing(FileJournal(folder, segment_bytes=SEGMENT_BYTES, disk=disk, log=lambda message: None)) as journal:
        journal.open()
        return [entry.payload for entry in journal.read(None)]


def acknowledged_by_a_killed_writer(folder: Path, appends: int) -> int:
    command = [sys.executable, "-c", WRITER, str(folder), str(SEGMENT_BYTES)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(appends)]
        writer.kill()
        lines += [line for line in writer.stdout if line.endswith(b"\n")]
    assert writer.returncode == -9
    return int(lines[-1])


def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    chance = random.Random(5)
    for _ in range(8):
        acknowledged = acknowledged_by_a_killed_writer(tmp_path, chance.randint(1, 120))
        found = history(tmp_path)
        assert acknowledged <= len(found) <= acknowledged + 1
        assert found == [payload(seq) for seq in range(1, len(found) + 1)]


def survivors(
    folder: Path, forgetful: ForgetfulDisk, disk: Disk, segment_bytes: int = 200
) -> tuple[list[bytes], list[bytes], list[bytes]]:
    """Append until the power is cut. Gives what was acknowledged, what was in flight, and what is there afterwards."""
    acknowledged: list[bytes] = []
    in_flight: list[bytes] = []
    with closing(FileJournal(folder, segment_bytes=segment_bytes, disk=disk)) as journal:
        last = BEFORE_FIRST
        try:
            journal.open()
            for seq in range(1, 6):
                in_flight = [payload(seq)]
                last = fill(journal, in_flight, last)
                acknowledged, in_flight = acknowledged + in_flight, []
        except JournalUnavailable:
            assert forgetful.cut_at is not None
    return acknowledged, in_flight, history(folder)


@pytest.mark.parametrize("in_flight_bytes", [0, 1, ENTRY_HEADER_BYTES, ENTRY_HEADER_BYTES + 1, 10**6])
def test_a_power_cut_loses_nothing_that_was_acknowledged(tmp_path: Path, in_flight_bytes: int) -> None:
    """At every sync there is, those of opening and rotating among them."""
    syncs = ForgetfulDisk()
    acknowledged, _, found = survivors(tmp_path / "whole", syncs, syncs.disk())
    assert found == acknowledged == [payload(seq) for seq in range(1, 6)]
    assert syncs.syncs > 12
    for cut_at in range(1, syncs.syncs + 1):
        forgetful = ForgetfulDisk(cut_at=cut_at, in_flight=in_flight_bytes)
        acknowledged, in_flight, found = survivors(tmp_path / str(cut_at), forgetful, forgetful.disk())
        assert found in (acknowledged, acknowledged + in_flight), cut_at


def test_an_acknowledgement_before_the_sync_would_be_seen(tmp_path: Path) -> None:
    """The planted bug for the test above: appends that are never synced."""
    forgetful = ForgetfulDisk()
    disk = Disk(write=forgetful.write, fdatasync=lambda fd: None, fsync=forgetful.sync)
    acknowledged, _, found = survivors(tmp_path / "journal", forgetful, disk, SEGMENT_BYTES)
    assert len(found) < len(acknowledged) == 5


def run_with_faults(folder: Path, faulty: FaultyDisk) -> list[bytes]:
    """Open, append, open again, append: what was acknowledged until the disk failed."""
    acknowledged: list[bytes] = []
    try:
        for _ in range(2):
            with closing(FileJournal(folder, segment_bytes=200, disk=faulty.disk())) as journal:
                journal.open()
                last = BEFORE_FIRST
                for entry in journal.read(None):
                    last = entry.id
                for _ in range(3):
                    last = fill(journal, [payload(last.seq + 1)], last)
                    acknowledged.append(payload(last.seq))
    except JournalUnavailable:
        assert faulty.fail_at is not None
    return acknowledged


@pytest.mark.parametrize("taken", [0, 30, 10**6])
def test_a_disk_that_fails_at_any_call_loses_nothing_that_was_acknowledged(tmp_path: Path, taken: int) -> None:
    counted = FaultyDisk()
    assert run_with_faults(tmp_path / "whole", counted) == [payload(seq) for seq in range(1, 7)]
    for fail_at in range(1, len(counted.calls) + 1):
        folder = tmp_path / str(fail_at)
        faulty = FaultyDisk(fail_at=fail_at, taken=taken)
        acknowledged = run_with_faults(folder, faulty)
        assert len(faulty.calls) == fail_at, "nothing is written after a failure"
        found = history(folder)
        assert acknowledged == found[: len(acknowledged)]
        assert found == [payload(seq) for seq in range(1, len(found) + 1)]
        assert len(found) <= len(acknowledged) + 1


@pytest.mark.parametrize("cut_at", [1, 2, 3, None])
def test_an_entry_found_unsynced_is_synced_before_it_is_history(tmp_path: Path, cut_at: int | None) -> None:
    """A killed writer leaves it in the page cache. A power cut after the next opening must not take it back; one during
    that opening may, and the journal must not then miss it: it was never acknowledged."""
    with closing(FileJournal(tmp_path)) as journal:
        journal.open()
        fill(journal, [b"safe", b"cached"])
        _, cached = journal.read(None)
    forgetful = ForgetfulDisk(cut_at=cut_at)
    with closing(FileJournal(tmp_path, disk=forgetful.disk())) as journal:
        if cut_at is None:
            journal.open()
        else:
            with pytest.raises(JournalUnavailable, match="power cut"):
                journal.open()
    record = encode_entry(cached)
    synced = record in forgetful.synced
    assert synced or cut_at == 1
    if not synced:
        segment = next(tmp_path.glob("*.segment"))
        os.truncate(segment, segment.stat().st_size - len(record))
    assert history(tmp_path) == ([b"safe", b"cached"] if synced else [b"safe"])


def test_a_cut_that_is_interrupted_is_made_by_the_next_opening(tmp_path: Path) -> None:
    """The last entry was safe once, so the head counts on it: at no call of the opening that gives it up may a crash
    leave a journal that refuses to open."""
    calls = FaultyDisk()
    for fail_at in [*range(1, 7), None]:
        folder = tmp_path / str(fail_at)
        with closing(FileJournal(folder)) as journal:
            journal.open()
            fill(journal, [b"safe", b"damaged later"])
        assert history(folder) == [b"safe", b"damaged later"]
        segment = next(folder.glob("*.segment"))
        segment.write_bytes(segment.read_bytes()[:-1] + b"?")
        calls = FaultyDisk(fail_at=fail_at)
        if fail_at is None:
            assert history(folder, calls.disk()) == [b"safe"]
        else:
            with pytest.raises(JournalUnavailable):
                history(folder, calls.disk())
        assert history(folder) == [b"safe"]
    assert calls.calls == ["write", "fdatasync", "write", "fsync", "fsync", "fsync"], "each of them failed once"


def test_terms_rise_over_openings_that_fail_or_write_nothing(tmp_path: Path) -> None:
    terms = []
    for fail_at in [None, 1, 3, 5, None, 4, None]:
        with closing(FileJournal(tmp_path, disk=FaultyDisk(fail_at=fail_at).disk())) as journal:
            try:
                terms.append(journal.open())
            except JournalUnavailable:
                assert fail_at is not None
                continue
            assert journal.append(BEFORE_FIRST, b"").outcome in (Outcome.OK, Outcome.GAP)
    assert len(terms) >= 3
    assert terms == sorted(set(terms))


def trimmed(folder: Path, disk: Disk) -> bool:
    """Six entries in small segments, of which the first four are let go. False where the disk failed it."""
    with closing(FileJournal(folder, segment_bytes=200)) as journal:
        journal.open()
        fill(journal, [payload(seq) for seq in range(1, 7)])
    with closing(FileJournal(folder, segment_bytes=200, disk=disk)) as journal:
        try:
            term = journal.open()
            journal.trim(EntryId(term - 1, 4))
        except JournalUnavailable:
            return False
    return True


@pytest.mark.parametrize("fail_at", range(1, 20))
def test_a_trim_that_is_interrupted_loses_nothing_after_its_floor(tmp_path: Path, fail_at: int) -> None:
    faulty = FaultyDisk(fail_at=fail_at)
    done = trimmed(tmp_path, faulty.disk())
    assert done == (len(faulty.calls) < fail_at)
    with closing(FileJournal(tmp_path, segment_bytes=200)) as journal:
        journal.open()
        assert [entry.payload for entry in journal.read(EntryId(1, 4))] == [payload(5), payload(6)]


def test_what_an_interrupted_trim_left_is_swept_by_the_next_opening(tmp_path: Path) -> None:
    """The head no longer counts on these segments: one that is there, or is not, or is damaged, is all the same."""
    before = trimmed(tmp_path / "whole", REAL_DISK)
    assert before
    kept = {path.name for path in (tmp_path / "whole").glob("*.segment")}
    assert trimmed(tmp_path / "left", REAL_DISK)
    (tmp_path / "left" / f"{1:020d}.segment").write_bytes(b"a leftover")
    with closing(FileJournal(tmp_path / "left", segment_bytes=200)) as journal:
        journal.open()
        assert [entry.payload for entry in journal.read(EntryId(1, 4))] == [payload(5), payload(6)]
        with pytest.raises(EntryUnknown):
            next(journal.read(None))
    assert {path.name for path in (tmp_path / "left").glob("*.segment")} == kept


def test_a_snapshot_that_cannot_be_written_takes_no_room(tmp_path: Path) -> None:
    with closing(FileJournal(tmp_path)) as journal:
        journal.open()
        last = fill(journal, [payload(1)])
    before = sorted(path.name for path in tmp_path.iterdir())
    full = FileJournal(tmp_path, disk=FaultyDisk(fail_at=1, error=errno.ENOSPC, taken=30).disk())
    with pytest.raises(JournalUnavailable, match="No space left"):
        full.save(last, b"image" * 100)
    low = FileJournal(tmp_path, floor_bytes=99, disk=Disk(free=lambda fd: 100))
    with pytest.raises(JournalUnavailable, match="no room for a snapshot"):
        low.save(last, b"image")
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    low.save(last, b"!")
    assert low.snapshot() == (last, b"!")
