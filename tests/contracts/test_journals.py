"""Each journal, held to the contract of all journals."""

from pathlib import Path

import pytest

from core.journal import BEFORE_FIRST, EntryUnknown, FileJournal, Journal, MemoryJournal
from tests.contracts.journal_suite import DurableJournalContract, JournalContract, fill


class TestMemoryJournal(JournalContract):
    def make(self, folder: Path) -> Journal:
        return MemoryJournal(retain=True)


class TestFileJournal(DurableJournalContract):
    def make(self, folder: Path) -> Journal:
        return FileJournal(folder)

    def overtake(self, folder: Path) -> Journal:
        (folder / "lock").unlink()
        second = self.make(folder)
        second.open()
        return second


class TestFileJournalOfManySegments(TestFileJournal):
    def make(self, folder: Path) -> Journal:
        return FileJournal(folder, segment_bytes=150)


def test_memory_keeps_nothing_unless_asked_and_says_so() -> None:
    journal = MemoryJournal()
    journal.open()
    assert list(journal.read(None)) == []
    last = fill(journal, [b"x"] * 1000)
    assert list(journal.read(last)) == []
    assert journal._entries == []
    with pytest.raises(EntryUnknown):
        next(journal.read(BEFORE_FIRST))
