"""A server that is killed leaves its maker of snapshots at work, and the next server starts one of its own: neither
may spoil what the other makes, nor keep that server from starting.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from core.journal import FileJournal
from tests.contracts.journal_suite import fill
from tests.core.test_file_journal_crash import ROOT

IMAGE = b"image" * 1000
DIES = """
import os, signal, sys
from pathlib import Path
from core.journal import EntryId, FileJournal
from core.journal.folder import Disk

def half(fd, data, offset):
    os.pwrite(fd, data[: len(data) // 2], offset)
    os.kill(os.getpid(), signal.SIGKILL)

FileJournal(Path(sys.argv[1]), disk=Disk(write=half)).save(EntryId(1, 1), b"image" * 1000)
"""


def dies_over_the_same(folder: Path) -> None:
    command = [sys.executable, "-c", DIES, str(folder)]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == -9


def test_a_maker_that_dies_does_not_spoil_the_snapshot_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other dies over the same snapshot after this one was read back, and before it has its name."""
    journal = FileJournal(tmp_path)
    journal.open()
    last = fill(journal, [b"entry"])
    replace = Path.replace

    def after_the_other(self: Path, target: Path) -> Path:
        dies_over_the_same(tmp_path)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", after_the_other)
    journal.save(last, IMAGE)
    assert journal.snapshot() == (last, IMAGE)
    journal.close()
    monkeypatch.undo()
    assert len(list(tmp_path.glob("*.new"))) == 1
    journal.open()
    assert not list(tmp_path.glob("*.new"))
    journal.close()


def test_a_maker_that_finishes_while_the_next_server_starts_does_not_stop_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = FileJournal(tmp_path)
    journal.open()
    last = fill(journal, [b"entry"])
    journal.close()
    (tmp_path / "head.new").touch()
    unlink = Path.unlink

    def after_it_finished(self: Path, missing_ok: bool = False) -> None:
        if self.name == "head.new" and self.exists():
            self.rename(tmp_path / "head.renamed")
            unlink(tmp_path / "head.renamed")
        unlink(self, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", after_it_finished)
    journal.open()
    assert [entry.id for entry in journal.read(None)] == [last]
    journal.close()
