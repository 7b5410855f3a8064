"""The exceptions of journals. A refused append is an outcome (contract.py) and no exception."""

# JournalError
# ├── JournalDamaged      the bytes on disk are not a history that can be trusted
# ├── JournalLocked       another writer owns the journal
# ├── JournalUnavailable  the journal is not open, or its disk failed it
# └── EntryUnknown        there is no such entry to read after

from pathlib import Path


class JournalError(Exception):
    """The journal cannot do what was asked of it."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class JournalDamaged(JournalError):
    """The journal is damaged. Nothing was changed; the message says where, what, and what to do."""

    def __init__(self, file: Path, offset: int, what: str, advice: str) -> None:
        super().__init__(f"{file}, byte {offset}: {what}; {advice}")
        self.file = file
        self.offset = offset


class JournalLocked(JournalError):
    """The journal is in use by another writer."""


class JournalUnavailable(JournalError):
    """The journal is not open, or its disk failed. Of the entry at hand it is not known whether it will be there."""


class EntryUnknown(JournalError):
    """The journal does not hold what comes after that entry: trimmed, never kept, or of another history."""
