"""A journal's folder: the file names in it, the lock of its owner, and how its files are made, replaced and deleted.
Every write that must be durable goes through a `Disk`. The formats are in segment.py.
"""

import errno
import fcntl
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .errors import JournalDamaged, JournalLocked, JournalUnavailable

HEAD_NAME: Final = "head"
LOCK_NAME: Final = "lock"
_KNOWN: Final = re.compile(r"lock|head(\.new)?|[0-9]{20}\.(segment(\.new)?|snapshot(\.[0-9]+\.new)?)")
_MODE: Final = 0o640


def _free(fd: int) -> int:
    """Bytes that are free on the disk of an open file."""
    there = os.fstatvfs(fd)
    return there.f_bavail * there.f_frsize


@dataclass(frozen=True, slots=True)
class Disk:
    """The system calls of durable writes. Tests replace them by calls that fail, write less or forget."""

    write: Callable[[int, bytes, int], int] = os.pwrite
    fdatasync: Callable[[int], None] = os.fdatasync
    fsync: Callable[[int], None] = os.fsync
    free: Callable[[int], int] = _free

    def write_all(self, fd: int, data: bytes, offset: int) -> None:
        """Write all of `data`. A write may take only a part, so it is repeated until all is written."""
        done = self.write(fd, data, offset)
        while done < len(data):
            more = self.write(fd, data[done:], offset + done)
            if more == 0:
                raise OSError(errno.EIO, "the disk takes no more bytes")
            done += more


REAL_DISK: Final = Disk()


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of one journal."""

    path: Path
    disk: Disk

    def segment(self, first: int) -> Path:
        return self.path / f"{first:020d}.segment"

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Turns an OSError of its body into `JournalUnavailable`."""
        try:
            yield
        except OSError as error:
            raise self.unavailable(error) from error

    def unavailable(self, error: OSError) -> JournalUnavailable:
        where = f" ({error.filename})" if error.filename else ""
        return JournalUnavailable(f"the journal in {self.path} failed: {error.strerror or error}{where}")

    def make(self) -> None:
        missing = [path for path in (self.path, *self.path.parents) if not path.exists()]
        self.path.mkdir(parents=True, exist_ok=True)
        for path in missing:
            self._sync(path.parent)

    def segments(self) -> list[int]:
        """The first seq of each segment, ascending. Raises JournalDamaged for a file that no journal writes."""
        names = sorted(path.name for path in self.path.iterdir())
        for name in names:
            if not _KNOWN.fullmatch(name):
                raise JournalDamaged(self.path / name, 0, "this file is not of a journal", "move it out of the folder")
        return [int(name[:20]) for name in names if name.endswith(".segment")]

    def snapshot(self, seq: int) -> Path:
        return self.path / f"{seq:020d}.snapshot"

    def snapshots(self) -> list[int]:
        """The last seq that each snapshot includes, ascending."""
        return sorted(int(path.name[:20]) for path in self.path.glob("*.snapshot"))

    def lock(self, owned: ExitStack) -> int:
        """Own the folder until `owned` is closed. Returns the descriptor of the lock file."""
        fd = self._flock(os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX, owned)
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        return fd

    def hold(self, owned: ExitStack) -> None:
        """Keep other processes from owning the folder until `owned` is closed; changes no file."""
        if (self.path / LOCK_NAME).exists():
            self._flock(os.O_RDONLY, fcntl.LOCK_SH, owned)

    def take_turn(self, owned: ExitStack) -> None:
        """Wait until no other process of this machine makes snapshots here, and keep others waiting until `owned` is
        closed. The lock is on the folder itself, since older versions refuse a folder with a file unknown to them.
        """
        with self.guarded():
            fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            owned.callback(os.close, fd)
            fcntl.flock(fd, fcntl.LOCK_EX)

    def _flock(self, flags: int, kind: int, owned: ExitStack) -> int:
        fd = os.open(self.path / LOCK_NAME, flags, _MODE)
        owned.callback(os.close, fd)
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
            by = f"process {pid}" if pid.isdigit() else "another process"
            raise JournalLocked(f"the journal in {self.path} is in use by {by}") from None
        return fd

    def sweep(self) -> None:
        """Delete unfinished files that a crash left; they were never part of the journal."""
        for path in self.path.glob("*.new"):
            path.unlink(missing_ok=True)  # a maker of snapshots that outlived its server may just have renamed it

    def drop(self, paths: Sequence[Path]) -> None:
        """Delete files that are not needed any more."""
        for path in paths:
            path.unlink()
        if paths:
            self._sync(self.path)

    def put(self, path: Path, data: bytes) -> None:
        """Make or replace a file: at any moment the whole old or the whole new one is on disk."""
        aside = path.with_name(f"{path.name}.new")
        with self.making(aside, path):
            self.write(aside, data)

    @contextmanager
    def making(self, aside: Path, path: Path) -> Iterator[None]:
        """The body writes `aside`, which is then renamed to `path` durably; if the body fails, `aside` is deleted."""
        try:
            yield
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
        aside.replace(path)
        self._sync(self.path)

    def write(self, path: Path, data: bytes) -> None:
        """Write and sync a file. Its name in the folder is not synced yet."""
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _MODE)
        try:
            self.disk.write_all(fd, data, 0)
            self.disk.fsync(fd)
        finally:
            os.close(fd)

    def free(self) -> int:
        """Bytes that are free on its disk."""
        fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            return self.disk.free(fd)
        finally:
            os.close(fd)

    def _sync(self, path: Path) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self.disk.fsync(fd)
        finally:
            os.close(fd)
