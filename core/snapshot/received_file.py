"""A checkpoint's file while it comes in: written aside under a name of its own, hashed and measured as it is written.

It is locked while somebody writes it, so that files which a killed process left can be told from those, and deleted.
"""

import fcntl
import os
import secrets
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Final

from core.errors import JournalUnavailable
from core.journal.folder import Folder

SUFFIX: Final = ".upload"
_MODE: Final = 0o640


class ReceivedFile:
    """Open from the start until `discard`; `bytes` are those written so far. One caller at a time."""

    def __init__(self, folder: Folder, name: str, floor_bytes: int) -> None:
        self.path, self._fd = _locked(folder.path, name)
        self.bytes = 0
        self._folder, self._floor_bytes = folder, floor_bytes
        self._hash = sha256()
        self.turn = Lock()  # of who places it, and who discards it

    @property
    def sha256(self) -> str:
        """Of what is written so far, in hex."""
        return self._hash.hexdigest()

    @property
    def digest(self) -> bytes:
        """The same, 32 bytes."""
        return self._hash.digest()

    def write(self, data: bytes) -> None:
        """More of it. Raises OSError, and JournalUnavailable where the disk has no room."""
        self.require_room(len(data))
        self._folder.disk.write_all(self._fd, data, self.bytes)
        self._hash.update(data)
        self.bytes += len(data)

    def require_room(self, size: int) -> None:
        """Raises JournalUnavailable where so many bytes more would leave the disk too little."""
        if self._folder.free() < size + self._floor_bytes:
            raise JournalUnavailable(
                f"{self._folder.path}: the disk has no room for a checkpoint; free some, send again"
            )

    def sync(self) -> None:
        """All of it is on disk; its name is not yet."""
        self._folder.disk.fsync(self._fd)

    def discard(self) -> None:
        """Close it, and delete what was not placed under another name."""
        with self.turn:
            self.path.unlink(missing_ok=True)
            os.close(self._fd)


def _locked(folder: Path, name: str) -> tuple[Path, int]:
    """A new file and its descriptor. A sweep may delete it before it is locked; then another one is made."""
    while True:
        path = folder / f"{name}.{secrets.token_hex(8)}{SUFFIX}"
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            if os.fstat(fd).st_nlink:
                return path, fd
        except OSError:
            os.close(fd)
            raise
        os.close(fd)


def sweep(folder: Path) -> None:
    """Delete what processes left that were killed while they received a file."""
    for path in folder.glob(f"*{SUFFIX}"):
        with suppress(OSError):  # another one deletes it too, or writes it
            _delete_unlocked(path)


def _delete_unlocked(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    finally:
        os.close(fd)
