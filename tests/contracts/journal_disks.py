"""Fake disks that lose, fail or shorten writes, for journals that write through `Disk`. No tests in this file."""

import errno
import os
from dataclasses import dataclass, field

from core.journal.folder import Disk


@dataclass
class FaultyDisk:
    """Fails at its call number `fail_at` and at no other; a failing write has taken `taken` bytes before it does."""

    fail_at: int | None = None
    error: int = errno.EIO
    taken: int = 0
    calls: list[str] = field(default_factory=list)

    def disk(self) -> Disk:
        return Disk(self._write, lambda fd: self._sync("fdatasync", fd), lambda fd: self._sync("fsync", fd))

    def _write(self, fd: int, data: bytes, offset: int) -> int:
        if self._is_due("write"):
            os.pwrite(fd, data[: self.taken], offset)
            raise OSError(self.error, os.strerror(self.error))
        return os.pwrite(fd, data, offset)

    def _sync(self, call: str, fd: int) -> None:
        if self._is_due(call):
            raise OSError(self.error, os.strerror(self.error))

    def _is_due(self, call: str) -> bool:
        self.calls.append(call)
        return len(self.calls) == self.fail_at


@dataclass
class ForgetfulDisk:
    """Keeps written bytes to itself until they are synced: dropping it is a power cut. When the power goes, at sync
    number `cut_at`, the first `in_flight` bytes of each unsynced write to that file have reached the disk all the same.
    `synced` is every write that did so in full and in order."""

    cut_at: int | None = None
    in_flight: int = 0
    syncs: int = 0
    pending: dict[int, list[tuple[int, bytes]]] = field(default_factory=dict)
    synced: list[bytes] = field(default_factory=list)

    def disk(self) -> Disk:
        return Disk(self.write, self.sync, self.sync)

    def write(self, fd: int, data: bytes, offset: int) -> int:
        self.pending.setdefault(fd, []).append((offset, data))
        return len(data)

    def sync(self, fd: int) -> None:
        self.syncs += 1
        if self.cut_at is not None and self.syncs >= self.cut_at:
            for offset, data in self.pending.pop(fd, []):
                os.pwrite(fd, data[: self.in_flight], offset)
            raise OSError(errno.EIO, "power cut")
        for offset, data in self.pending.pop(fd, []):
            os.pwrite(fd, data, offset)
            self.synced.append(data)


QUICK_DISK = Disk(fdatasync=lambda fd: None, fsync=lambda fd: None)
"""For tests of what is written, where nothing crashes."""
