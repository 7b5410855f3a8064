"""A journal whose disk fails when it is told to: taken first by a Python process that finds this folder on its path.

TEST_FAULT names a file. While it is there its one line says which call fails, and how: `write ENOSPC` takes half of the
bytes, `fdatasync EIO` forgets those that it should have made safe, `free` says that nothing is left.
TEST_SEGMENT_BYTES: where segments end.
"""

import errno
import os
from pathlib import Path

from core.journal.file import FileJournal
from core.journal.folder import REAL_DISK, Disk

FAULT = Path(os.environ["TEST_FAULT"])
written: dict[int, int] = {}


def failing(call: str) -> OSError | None:
    if not FAULT.exists():  # to look takes no descriptor, of which a test may leave none
        return None
    told, _, name = FAULT.read_text().partition(" ")
    if told != call:
        return None
    number = getattr(errno, name or "EIO")
    return OSError(number, os.strerror(number))


def write(fd: int, data: bytes, offset: int) -> int:
    written[fd] = offset
    error = failing("write")
    if error is not None:
        os.pwrite(fd, data[: len(data) // 2], offset)
        raise error
    return os.pwrite(fd, data, offset)


def fdatasync(fd: int) -> None:
    error = failing("fdatasync")
    if error is not None:
        os.ftruncate(fd, written[fd])
        raise error
    os.fdatasync(fd)


def free(fd: int) -> int:
    return 0 if failing("free") else REAL_DISK.free(fd)


defaults = FileJournal.__init__.__kwdefaults__
defaults["disk"] = Disk(write=write, fdatasync=fdatasync, free=free)
if "TEST_SEGMENT_BYTES" in os.environ:
    defaults["segment_bytes"] = int(os.environ["TEST_SEGMENT_BYTES"])
