"""A file that comes in, on the disk: its lock, its room, and which files a sweep deletes."""

import fcntl
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

import core.snapshot.received_file
from core.errors import JournalUnavailable
from core.journal.folder import REAL_DISK, Folder
from core.snapshot.received_file import ReceivedFile, sweep


def received(path: Path, free: int = 10**9, floor: int = 0) -> ReceivedFile:
    return ReceivedFile(Folder(path, replace(REAL_DISK, free=lambda _: free)), "a", floor)


def test_it_is_measured_and_hashed_as_it_is_written(tmp_path: Path) -> None:
    file = received(tmp_path)
    for piece in (b"some", b"", b" more"):
        file.write(piece)
    assert file.path.read_bytes() == b"some more"
    assert (file.bytes, file.sha256) == (9, sha256(b"some more").hexdigest())
    assert file.digest == sha256(b"some more").digest()
    file.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_piece_that_would_leave_the_disk_too_little_is_not_written(tmp_path: Path) -> None:
    file = received(tmp_path, free=104, floor=100)
    file.write(b"four")
    with pytest.raises(JournalUnavailable, match="no room"):
        file.write(b"fives")
    assert file.path.read_bytes() == b"four"
    file.discard()


def test_a_sweep_deletes_what_nobody_writes(tmp_path: Path) -> None:
    written, placed = received(tmp_path), tmp_path / "b.checkpoint"
    placed.touch()
    (tmp_path / "left.0000.upload").write_bytes(b"half")
    (tmp_path / "a.upload.checkpoint").touch()
    sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [written.path.name, "a.upload.checkpoint", placed.name]
    written.discard()
    sweep(tmp_path / "nowhere")


def test_what_a_sweep_deletes_before_it_is_locked_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flock, sweeps = fcntl.flock, [sweep]

    def late(fd: int, kind: int) -> None:
        if sweeps:
            sweeps.pop()(tmp_path)
        flock(fd, kind)

    monkeypatch.setattr(core.snapshot.received_file.fcntl, "flock", late)
    file = received(tmp_path)
    assert not sweeps
    assert file.path.exists()
    file.discard()
