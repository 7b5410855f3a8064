"""A disk in a folder whose power may go at any moment. No test lives here.

Its user reads and writes real files. Beside them is kept what a disk must have by now: the bytes that a sync of a file
made safe, and the names that a sync of the folder did. What a power cut leaves is an image: of each file, the safe
bytes and as many of the writes since as chance has it, the last one torn; of each name, the old state or the new one.
"""

import errno
import os
import random
import stat
import threading
from dataclasses import dataclass, field
from pathlib import Path

from core.journal.folder import LOCK_NAME, Disk


@dataclass
class File:
    """`fd` keeps the inode from becoming another file's."""

    fd: int
    safe: bytes = b""
    since: list[tuple[int, bytes]] = field(default_factory=list)

    def make_safe(self, size: int) -> None:
        """All that was written since; and a file that was cut is cut."""
        data = bytearray(self.safe)
        for offset, written in self.since:
            _put(data, offset, written)
        self.safe, self.since = bytes(data[:size]), []

    def left(self, chance: random.Random) -> bytes:
        """What a power cut leaves of it."""
        whole = chance.randint(0, len(self.since))
        data = bytearray(self.safe)
        for offset, written in self.since[:whole]:
            _put(data, offset, written)
        for offset, written in self.since[whole : whole + 1]:
            _put(data, offset, written[: chance.randint(0, len(written))])
        return bytes(data)


def _put(data: bytearray, offset: int, written: bytes) -> None:
    data.extend(bytes(max(0, offset - len(data))))
    data[offset : offset + len(written)] = written


class UncertainDisk:
    """The power of this folder goes at call number `cut_at`; what is left is in `image` then. Any thread may call."""

    def __init__(self, folder: Path, image: Path, chance: random.Random, cut_at: int | None) -> None:
        self.folder, self.image, self.chance, self.cut_at = folder, image, chance, cut_at
        self.calls = 0
        self.is_off = False
        self._lock = threading.Lock()
        self._files: dict[int, File] = {}
        self._names = self._listing()
        for path in folder.iterdir():
            self._files[path.stat().st_ino] = File(os.open(path, os.O_RDONLY), path.read_bytes())

    def disk(self) -> Disk:
        return Disk(self._write, self._sync, self._sync)

    def close(self) -> None:
        """Forget it all."""
        for file in self._files.values():
            os.close(file.fd)
        self._files.clear()

    def _write(self, fd: int, data: bytes, offset: int) -> int:
        with self._lock:
            self._refuse_if_off()
            self._file(fd).since.append((offset, bytes(data)))
            self._count()
            return os.pwrite(fd, data, offset)

    def _sync(self, fd: int) -> None:
        with self._lock:
            self._refuse_if_off()
            self._count()
            if stat.S_ISDIR(os.fstat(fd).st_mode):
                self._names = self._listing()
                self._let_go()
            else:
                self._file(fd).make_safe(os.fstat(fd).st_size)

    def _refuse_if_off(self) -> None:
        if self.is_off:
            raise OSError(errno.EIO, "power cut")

    def _count(self) -> None:
        """A call has begun: it may be the one in which the power goes."""
        self.calls += 1
        if self.calls == self.cut_at:
            self._cut()
            self.is_off = True
            self._refuse_if_off()

    def _file(self, fd: int) -> File:
        inode = os.fstat(fd).st_ino
        if inode not in self._files:
            self._files[inode] = File(os.dup(fd))
        return self._files[inode]

    def _listing(self) -> dict[str, int]:
        names = {}
        for entry in os.scandir(self.folder):
            if entry.name != LOCK_NAME:
                names[entry.name] = entry.inode()
        return names

    def _let_go(self) -> None:
        """Files that have no name."""
        for inode in self._files.keys() - set(self._names.values()):
            os.close(self._files.pop(inode).fd)

    def _cut(self) -> None:
        self.image.mkdir()
        safe, now = self._names, self._listing()
        for name in sorted(safe.keys() | now.keys()):
            inode = self.chance.choice((safe, now)).get(name)
            if inode is not None:
                file = self._files.get(inode)
                (self.image / name).write_bytes(file.left(self.chance) if file else b"")
