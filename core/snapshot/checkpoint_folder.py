"""A folder of checkpoints: for each a file of its state, and a note about it.

A checkpoint is there once both are. The file takes its name last and loses it first, so a file without a note is not
the service's, and stays. Both are written aside first; neither ever changes. Callers choose the names, and a name is no
path. All of it blocks: it is called beside the event loop, and in the process that makes checkpoints.
"""

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import msgspec

from core.errors import CheckpointCorrupt, CheckpointExists, CheckpointNotFound, Invalid, JournalUnavailable
from core.journal.contract import EntryId
from core.journal.folder import REAL_DISK, Folder

from . import checkpoint_file
from .checkpoint_file import Saved

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
STATE, NOTE = ".checkpoint", ".json"
_log = logging.getLogger("batchmeta")


class Note(msgspec.Struct, kw_only=True):
    """What the note of a checkpoint says, as JSON."""

    name: str
    revision: int  # the service's, that the file holds
    bytes: int  # size of the file
    sha256: str  # of the file, in hex
    created_at: str  # RFC 3339
    key: str | None = (
        None  # of the call that made it, so that the same call sent again gets the same answer after a crash
    )


def checked(name: str, loc: str) -> str:
    """The name as it came. Raises Invalid."""
    if not NAME.fullmatch(name):
        raise Invalid.at(loc, "must be 1 to 100 of A-Z, a-z, 0-9, and from the second on . _ -")
    return name


@dataclass(frozen=True, slots=True)
class CheckpointRequest:
    """What a call wants a checkpoint to be."""

    name: str
    key: str | None  # of the call that asks
    created_at: str  # RFC 3339


class CheckpointFolder:
    """The checkpoints under `path`; `floor_bytes` must stay free on its disk. `files` makes and deletes files there."""

    def __init__(self, path: Path, floor_bytes: int = 0) -> None:
        self.path = path
        self.floor_bytes = floor_bytes
        self.files = Folder(path, REAL_DISK)

    def all(self) -> list[Note]:
        """In the order they were made; what `find` refuses is left out, with a warning. Raises JournalUnavailable."""
        with self.told():
            names = [path.stem for path in self.path.glob(f"*{NOTE}") if NAME.fullmatch(path.stem)]
        found = [note for note in map(self._sound, names) if note is not None]
        return sorted(found, key=lambda one: (one.created_at, one.revision, one.name))

    def find(self, name: str) -> Note:
        """Raises CheckpointNotFound, CheckpointCorrupt, JournalUnavailable."""
        self._require_note(name)
        note = self._noted(name)
        if not self.state_of(name).exists():
            raise CheckpointCorrupt(f"{self.state_of(name)} is not there, only its note is: delete the checkpoint")
        return note

    def made_by(self, name: str, key: str | None) -> Note | None:
        """The checkpoint of this name if the call with this key made it, None if there is none, or its note alone.

        Raises CheckpointExists for another's and for a file without a note, CheckpointCorrupt for a note of another.
        """
        is_there = _is_there(self.state_of(name))
        if not _is_there(self.note_of(name)):
            if is_there:
                raise CheckpointExists(
                    f"{self.state_of(name)} is there without a note, and stays as it is: choose another name, or move "
                    "it"
                )
            return None
        note = self._noted(name)
        if is_there and (key is None or note.key != key):
            raise CheckpointExists(f"there is a checkpoint {name!r}, and it stays as it is: choose another name")
        return note if is_there else None

    def save(self, order: CheckpointRequest, last: EntryId, revision: int, image: bytes) -> None:
        """Raises as `made_by`, and JournalUnavailable where the disk fails, or has no room for it."""
        name, data = order.name, checkpoint_file.encode(last, image)
        note = Note(
            name=name,
            revision=revision,
            bytes=len(data),
            sha256=sha256(data).hexdigest(),
            created_at=order.created_at,
            key=order.key,
        )
        state = self.state_of(name)
        with self.told():
            self.files.make()
            if self.files.free() < len(data) + self.floor_bytes:
                raise JournalUnavailable(f"{self.path}: the disk has no room for a checkpoint; free some, send again")
            if self.made_by(name, order.key) is None:
                with self.files.making(_aside(state), state):
                    self.files.write(_aside(state), data)
                    self.files.put(self.note_of(name), msgspec.json.encode(note))

    def delete(self, name: str) -> None:
        """With a note that cannot be read too, if its file is there.

        Raises CheckpointNotFound, CheckpointCorrupt for what is not ours, JournalUnavailable.
        """
        self._require_note(name)
        state, note = self.state_of(name), self.note_of(name)
        known = _parsed(note)
        if known.name != name if isinstance(known, Note) else not _is_there(state):
            self._noted(name)  # which says what is wrong
        with self.told():
            self.files.drop([path for path in (state, _aside(state), _aside(note), note) if _is_there(path)])

    def read(self, name: str) -> Saved:
        """Raises CheckpointNotFound, CheckpointCorrupt."""
        return checkpoint_file.read(self.state_of(name), self.find(name).sha256)

    def _sound(self, name: str) -> Note | None:
        try:
            return self.find(name)
        except CheckpointNotFound:
            return None  # deleted meanwhile
        except CheckpointCorrupt as error:
            _log.warning("not listed: %s", error)
            return None

    def _require_note(self, name: str) -> None:
        if _is_there(self.note_of(name)):
            return
        told = f"there is no checkpoint {name!r}: GET /v1/checkpoints lists them"
        if _is_there(self.state_of(name)):
            told += f"; {self.state_of(name)} has no note, and is let be"
        raise CheckpointNotFound(told)

    def _noted(self, name: str) -> Note:
        """Raises CheckpointCorrupt."""
        path = self.note_of(name)
        note = _parsed(path)
        if not isinstance(note, Note):
            raise CheckpointCorrupt(f"{path}: not a note of a checkpoint ({note}); move it away, or delete it")
        if note.name != name:
            raise CheckpointCorrupt(
                f"{path}: a note of the checkpoint {note.name!r}, not of {name!r}; rename its files"
            )
        return note

    @contextmanager
    def told(self) -> Iterator[None]:
        """Turns an OSError of its body into JournalUnavailable."""
        try:
            yield
        except OSError as error:
            raise JournalUnavailable(
                f"{self.path}: {error.strerror or error}; the checkpoints cannot be reached"
            ) from error

    def has(self, name: str) -> bool:
        """File and note are there, whatever they are."""
        return _is_there(self.state_of(name)) and _is_there(self.note_of(name))

    def state_of(self, name: str) -> Path:
        """The file of a checkpoint."""
        return self.path / f"{name}{STATE}"

    def note_of(self, name: str) -> Path:
        """The file of its note."""
        return self.path / f"{name}{NOTE}"


def _parsed(path: Path) -> Note | str:
    """The note, or why it cannot be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Note)
    except OSError as error:
        return error.strerror or str(error)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return str(error)


def _aside(path: Path) -> Path:
    return path.with_name(f"{path.name}.new")


def _is_there(path: Path) -> bool:
    """A link that leads nowhere is somebody's too."""
    return os.path.lexists(path)
