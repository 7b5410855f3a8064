"""`--verify` looks through a data folder and changes nothing: 0 where it is sound, 1 and one line where it is not."""

import os
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from app.__main__ import main
from core.journal import BEFORE_FIRST, FileJournal
from tests.core.world import add, new_engine, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two partitions with three samples, in three entries."""
    engine, path = new_engine(), tmp_path / "journal"
    with closing(FileJournal(path)) as journal:
        journal.open()
        last = BEFORE_FIRST
        for step in (lambda: add(engine, "p", 2), lambda: add(engine, "q"), lambda: write(engine, "q", [2], ["x"])):
            step()
            last = journal.append(last, msgspec.msgpack.encode(engine.log)).last
            engine.log.clear()
    return path


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def verified(journal: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit status, and the one line."""
    status = main(["--verify", "--journal", journal])
    said = capsys.readouterr()
    lines = (said.out + said.err).splitlines()
    assert len(lines) == 1
    assert bool(said.err) == bool(status)
    return status, lines[0]


def test_a_sound_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(folder)
    status, line = verified(f"file://{folder}", capsys)
    assert (status, files(folder)) == (0, before)
    assert "is sound: 3 entries, the last 1-3: revision 3, 2 partitions, 3 samples" in line


def test_a_torn_last_entry_is_told_and_left(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    segment = next(folder.glob("*.segment"))
    os.truncate(segment, segment.stat().st_size - 1)
    before = files(folder)
    status, line = verified(f"file://{folder}", capsys)
    assert (status, files(folder)) == (1, before)
    assert str(segment) in line
    assert "the next start will cut it, and go on from 2 entries, the last 1-2" in line


def test_damage_is_told_with_file_and_byte(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    segment = next(folder.glob("*.segment"))
    content = bytearray(segment.read_bytes())
    content[60] ^= 1
    segment.write_bytes(content)
    before = files(folder)
    status, line = verified(f"file://{folder}", capsys)
    assert (status, files(folder)) == (1, before)
    assert f"{segment}, byte " in line


def test_a_folder_that_a_server_owns_is_left_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(FileJournal(folder)) as journal:
        journal.open()
        status, line = verified(f"file://{folder}", capsys)
    assert (status, f"in use by process {os.getpid()}" in line) == (1, True)


def test_it_keeps_a_server_out_while_it_looks(folder: Path) -> None:
    with closing(FileJournal(folder)) as looking, closing(FileJournal(folder)) as server:
        assert looking.look() is None
        with pytest.raises(Exception, match="in use"):
            server.open()
        with pytest.raises(Exception, match="not open"):
            looking.append(BEFORE_FIRST, b"")


@pytest.mark.parametrize(("journal", "word"), [("memory:", "nothing to verify"), ("file://{}/none", "none")])
def test_where_there_is_nothing(tmp_path: Path, journal: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, line = verified(journal.format(tmp_path), capsys)
    assert (status, word in line) == (1, True)
    assert list(tmp_path.iterdir()) == []
