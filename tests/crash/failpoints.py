"""Named points at which a real server, or the process that makes its snapshots, kills itself with SIGKILL.

They sit at seams of the service that are there anyway, and are put there from outside (site/sitecustomize.py), so that
the service knows nothing of them and pays nothing. No test lives here. What the environment says:

    FAILPOINT                before-append:20 is the 20th time; in `…:1:server` the maker of snapshots kills its server
    FAILPOINT_MARK           a file that is made at the kill
    FAILPOINT_SEGMENT_BYTES  where a segment ends
    FAILPOINT_DISK           forgetful: what was not synced is lost with the process, as by a power cut
    FAILPOINT_PLANTED        a bug to plant first (planted.py)
"""

import asyncio
import os
import signal
from collections.abc import Callable, MutableMapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from core.engine import Engine
from core.journal import EntryId, FileJournal
from core.journal.folder import REAL_DISK, Disk, Folder
from core.journal.segment import MARK, SNAPSHOT
from core.runtime.engine_thread import EngineThread
from tests.contracts.journal_disks import ForgetfulDisk
from tests.crash.planted import PLANTED

SERVER: Final = "FAILPOINT_SERVER"
When = Callable[..., object]


class Reached:
    """Called each time the point is reached; it kills at one of them."""

    def __init__(self, at: int, victim: int, mark: str) -> None:
        self._left, self._victim, self._mark = at, victim, mark

    def __call__(self) -> None:
        self._left -= 1
        if self._left == 0 and self._victim in (os.getpid(), os.getppid()):
            if self._mark:
                Path(self._mark).touch()
            os.kill(self._victim, signal.SIGKILL)


def install(environment: MutableMapping[str, str]) -> None:
    """Plant the bug, choose the disk, and set the point, each where the environment asks for it."""
    server = int(environment.setdefault(SERVER, str(os.getpid())))
    defaults: dict[str, Any] = FileJournal.__init__.__kwdefaults__  # type: ignore[assignment]
    if environment.get("FAILPOINT_PLANTED"):
        PLANTED[environment["FAILPOINT_PLANTED"]](setattr)
    if environment.get("FAILPOINT_SEGMENT_BYTES"):
        defaults["segment_bytes"] = int(environment["FAILPOINT_SEGMENT_BYTES"])
    if environment.get("FAILPOINT_DISK") == "forgetful":
        defaults["disk"] = ForgetfulDisk().disk()
    if environment.get("FAILPOINT"):
        name, at, *victim = environment["FAILPOINT"].split(":")
        POINTS[name](Reached(int(at), server if victim else os.getpid(), environment.get("FAILPOINT_MARK", "")))
    os.nice = lambda increment: 0  # a snapshot is waited for


def before(owner: Any, name: str, reached: Reached, when: When = lambda *args: True) -> None:
    inner = getattr(owner, name)

    def wrapped(*args: Any) -> Any:
        if when(*args):
            reached()
        return inner(*args)

    setattr(owner, name, wrapped)


def after(owner: Any, name: str, reached: Reached, when: When = lambda *args: True) -> None:
    inner = getattr(owner, name)

    def wrapped(*args: Any) -> Any:
        result = inner(*args)
        if when(*args):
            reached()
        return result

    setattr(owner, name, wrapped)


def on_disk(change: Callable[[Disk], Disk]) -> None:
    defaults: dict[str, Any] = FileJournal.__init__.__kwdefaults__  # type: ignore[assignment]
    defaults["disk"] = change(defaults.get("disk", REAL_DISK))


def torn(kind: bytes, reached: Reached) -> None:
    """Half of a record of that kind is in its file."""

    def with_torn(disk: Disk) -> Disk:
        def write(fd: int, data: bytes, offset: int) -> int:
            if data.startswith(kind):
                os.pwrite(fd, data[: len(data) // 2], offset)
                reached()
            return disk.write(fd, data, offset)

        return replace(disk, write=write)

    on_disk(with_torn)


def around_fsync(reached: Reached, *, is_before: bool) -> None:
    """Of an entry."""

    def with_point(disk: Disk) -> Disk:
        def fdatasync(fd: int) -> None:
            if is_before:
                reached()
            disk.fdatasync(fd)
            if not is_before:
                reached()

        return replace(disk, fdatasync=fdatasync)

    on_disk(with_point)


def after_reply(reached: Reached) -> None:
    """uvloop writes at the end of a turn what was handed to it during that turn."""
    from app.direct import Direct

    inner = Direct._send

    def send(self: Direct, status: int, headers: Any, body: bytes) -> None:
        inner(self, status, headers, body)
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, reached)

    Direct._send = send  # type: ignore[method-assign]


def in_trim(reached: Reached, *, is_after: bool) -> None:
    """The first of several segments is gone; or all are. What an opening sweeps is no trim."""
    drop, trim = Folder.drop, FileJournal.trim
    trimming: list[bool] = []

    def whole(self: FileJournal, floor: EntryId) -> None:
        there = len(self._segments)
        trimming.append(True)
        trim(self, floor)
        trimming.pop()
        if is_after and len(self._segments) < there:
            reached()

    def in_two_steps(self: Folder, paths: list[Path]) -> None:
        if trimming and paths and not is_after:
            paths[0].unlink()
            reached()
            paths = paths[1:]
        drop(self, paths)

    FileJournal.trim = whole  # type: ignore[method-assign]
    Folder.drop = in_two_steps  # type: ignore[method-assign, assignment]


def _is_snapshot(_: Path, target: Path) -> bool:
    return Path(target).suffix == ".snapshot"


def _rotates(self: FileJournal, _journal: int, _term: int, segments: list[int], _last: Any) -> bool:
    return len(segments) > len(self._segments) > 0


def _trims(self: FileJournal, _journal: int, _term: int, segments: list[int], _last: Any) -> bool:
    return len(segments) < len(self._segments)


POINTS: Final[dict[str, Callable[[Reached], None]]] = {
    "before-apply": lambda reached: before(Engine, "commit", reached),
    "after-apply": lambda reached: after(Engine, "commit", reached),
    "before-append": lambda reached: before(FileJournal, "append", reached),
    "mid-write": lambda reached: torn(MARK, reached),
    "before-fsync": lambda reached: around_fsync(reached, is_before=True),
    "after-fsync": lambda reached: around_fsync(reached, is_before=False),
    "after-append": lambda reached: after(FileJournal, "append", reached),
    "before-reply": lambda reached: before(EngineThread, "_deliver", reached, lambda thread: thread._answers),
    "after-reply": after_reply,
    "mid-rotate": lambda reached: before(FileJournal, "_put_head", reached, _rotates),
    "mid-snapshot": lambda reached: torn(SNAPSHOT, reached),
    "before-snapshot-rename": lambda reached: before(Path, "replace", reached, _is_snapshot),
    "after-snapshot-rename": lambda reached: after(Path, "replace", reached, _is_snapshot),
    "before-trim": lambda reached: before(FileJournal, "_put_head", reached, _trims),
    "mid-trim": lambda reached: in_trim(reached, is_after=False),
    "after-trim": lambda reached: in_trim(reached, is_after=True),
}
"""`after-append`: no caller has a reply yet. `mid-rotate`: a new segment exists, and the head does not name it."""
