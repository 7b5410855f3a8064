"""A folder of checkpoints: for each a file of its state, in the format of a journal's snapshot, and a note about it.

The note is written last, so what has none is not there. Both are written aside first; neither ever changes. Names are
chosen by callers, and are no paths. Blocking: called beside the loop, and in the process that makes checkpoints.
"""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import msgspec

from batchmeta.wire.replies import Checkpoint
from core.engine import Engine
from core.errors import CheckpointCorrupt, CheckpointExists, CheckpointNotFound, Invalid, JournalUnavailable
from core.journal.contract import EntryId
from core.journal.folder import REAL_DISK, Folder
from core.journal.segment import Damage, decode_snapshot, encode_snapshot_header
from core.operations.checkpoints import Saved, looked_through

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
NO_JOURNAL = 0
STATE, NOTE = ".checkpoint", ".json"


class Note(Checkpoint):
    """`key`: of the call that made it, so that the same call sent again gets the same answer after a crash too."""

    key: str | None = None

    def told(self) -> Checkpoint:
        """Without what is nobody else's."""
        return Checkpoint(**{name: getattr(self, name) for name in Checkpoint.__struct_fields__})


def checked(name: str, loc: str) -> str:
    """The name as it came. Raises Invalid."""
    if not NAME.fullmatch(name):
        raise Invalid.at(loc, "must be 1 to 100 of A-Z, a-z, 0-9, and from the second on . _ -")
    return name


@dataclass(frozen=True, slots=True)
class Order:
    """What a checkpoint is to be: its name, who asked (a key or nobody's), and when, RFC 3339."""

    name: str
    key: str | None
    created_at: str


class Checkpoints:
    """`floor_bytes`: what must stay free on the folder's disk."""

    def __init__(self, path: Path, floor_bytes: int = 0) -> None:
        self.path = path
        self.floor_bytes = floor_bytes
        self._folder = Folder(path, REAL_DISK)

    def all(self) -> list[Note]:
        """In the order they were made. Raises CheckpointCorrupt, JournalUnavailable."""
        with self._told():
            found = [self._noted(path) for path in self.path.glob(f"*{NOTE}")]
        return sorted(found, key=lambda one: (one.created_at, one.revision, one.name))

    def find(self, name: str) -> Note:
        """Raises CheckpointNotFound, and as `all`."""
        with self._told():
            if not self._note(name).exists():
                raise CheckpointNotFound(f"there is no checkpoint {name!r}: GET /v1/checkpoints lists them")
            return self._noted(self._note(name))

    def made_by(self, name: str, key: str | None) -> Note | None:
        """The checkpoint of this name if the call with this key made it, None if there is none.

        Raises CheckpointExists for another's.
        """
        if not self._note(name).exists():
            return None
        note = self.find(name)
        if key is None or note.key != key:
            raise CheckpointExists(f"there is a checkpoint {name!r}, and it stays as it is: choose another name")
        return note

    def save(self, order: Order, last: EntryId, revision: int, image: bytes) -> None:
        """Raises JournalUnavailable where the disk fails, or has no room for it."""
        name, data = order.name, encode_snapshot_header(NO_JOURNAL, last, image) + image
        note = Note(
            name=name, revision=revision, bytes=len(data), sha256=sha256(data).hexdigest(),
            created_at=order.created_at, key=order.key,
        )  # fmt: skip
        with self._told():
            self._folder.make()
            if self._folder.free() < len(data) + self.floor_bytes:
                raise JournalUnavailable(f"{self.path}: the disk has no room for a checkpoint; free some, send again")
            self._folder.put(self._state(name), data)
            self._folder.put(self._note(name), msgspec.json.encode(note))

    def delete(self, name: str) -> None:
        """The note goes first. Raises CheckpointNotFound, JournalUnavailable."""
        with self._told():
            if not self._note(name).exists():
                raise CheckpointNotFound(f"there is no checkpoint {name!r}: GET /v1/checkpoints lists them")
            self._folder.drop([self._note(name)])
            self._state(name).unlink(missing_ok=True)

    def read(self, name: str) -> Saved:
        """Raises CheckpointNotFound, CheckpointCorrupt."""
        return read(self._state(name), self.find(name).sha256)

    def _noted(self, path: Path) -> Note:
        try:
            return msgspec.json.decode(path.read_bytes(), type=Note)
        except msgspec.MsgspecError as error:
            raise CheckpointCorrupt(f"{path}: not a note of a checkpoint ({error}); delete it") from error

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise JournalUnavailable(
                f"{self.path}: {error.strerror or error}; the checkpoints cannot be reached"
            ) from error

    def _state(self, name: str) -> Path:
        return self.path / f"{name}{STATE}"

    def _note(self, name: str) -> Path:
        return self.path / f"{name}{NOTE}"


def read(path: Path, digest: str | None = None) -> Saved:
    """The state in a file, looked through; `digest`: of the file, in hex. Raises CheckpointCorrupt."""
    try:
        data = path.read_bytes()
        if digest is not None and sha256(data).hexdigest() != digest:
            raise CheckpointCorrupt(f"{path}: the file is not the one that was written; restore another one")
        _, image = decode_snapshot(data, None)
    except OSError as error:
        raise CheckpointCorrupt(f"{path} cannot be read: {error.strerror}; restore another one") from error
    except Damage as damage:
        raise CheckpointCorrupt(f"{path}, byte {damage.offset}: {damage.what}; restore another one") from damage
    return looked_through(Engine(time.monotonic, time.time), image)
