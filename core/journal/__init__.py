"""Opens a journal by its URL, `file:…` or `memory:`. Only this file names the implementations; the rest of core uses
the contract and the errors.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from .contract import BEFORE_FIRST, Appended, Entry, EntryId, Journal, Outcome
from .errors import EntryUnknown, JournalDamaged, JournalError, JournalLocked, JournalUnavailable
from .file import FLOOR_BYTES, FileJournal, Log, warn
from .home_path import at_home
from .memory import MemoryJournal

__all__ = [
    "BEFORE_FIRST",
    "SCHEMES",
    "Appended",
    "Entry",
    "EntryId",
    "EntryUnknown",
    "FileJournal",
    "Journal",
    "JournalDamaged",
    "JournalError",
    "JournalLocked",
    "JournalUnavailable",
    "MemoryJournal",
    "Outcome",
    "journal_from_url",
]


_ABSOLUTE: Final = re.compile(r"(?://(?:localhost)?)?(/[^/].*)", re.IGNORECASE)


def _memory(rest: str, _base: Path, _floor_bytes: int, _log: Log) -> Journal:
    if rest:
        raise ValueError("memory: takes nothing after the colon")
    return MemoryJournal()


def _file(rest: str, base: Path, floor_bytes: int, log: Log) -> Journal:
    return FileJournal(base / _folder(rest), floor_bytes=floor_bytes, log=log)


def _folder(rest: str) -> str:
    """The folder that a `file:` URL names: as in RFC 8089, or a relative path, or one below a home (`~`)."""
    if re.search(r"[?#\x00-\x1f]|%(?![0-9A-Fa-f]{2})", rest):
        raise ValueError("a query, a fragment or a bad escape; write ?, # and % as %3F, %23 and %25")
    absolute = _ABSOLUTE.fullmatch(rest)
    if absolute is None and rest.startswith("/"):
        raise ValueError("a folder is relative, or starts after one slash or three; there is no host but localhost")
    path = unquote(absolute[1] if absolute else rest, errors="strict")
    if not path.strip("/") or "\0" in path or path.startswith("/") != bool(absolute):
        raise ValueError("the folder has no name, or not one that can be")
    return at_home(path) if rest.startswith("~") else path


SCHEMES: Final[dict[str, Callable[[str, Path, int, Log], Journal]]] = {"file": _file, "memory": _memory}


def journal_from_url(url: str, base: Path, log: Log = warn, floor_bytes: int = FLOOR_BYTES) -> Journal:
    """The journal at `url`, not opened yet. A relative folder is below `base`. The journal has room while its disk has
    `floor_bytes` free. Raises `ValueError`.
    """
    scheme, colon, rest = url.partition(":")
    try:
        if not colon or scheme not in SCHEMES:
            raise ValueError(f"no such scheme; there are {', '.join(SCHEMES)}")
        return SCHEMES[scheme](rest, base, floor_bytes, log)
    except ValueError as error:
        forms = "file:///absolute/folder, file:relative/folder or memory:"
        raise ValueError(f"journal {url!r}: {error}. Give {forms}") from error
