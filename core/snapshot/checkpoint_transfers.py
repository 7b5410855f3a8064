"""Files of checkpoints that go out to a caller, and come in from one: a whole file, or none.

All of it blocks: it is called beside the event loop.
"""

from contextlib import ExitStack
from hashlib import file_digest
from typing import BinaryIO

import msgspec

from core.errors import CheckpointCorrupt, CheckpointExists

from .checkpoint_folder import CheckpointFolder, Note
from .received_file import ReceivedFile, sweep


def open_file(folder: CheckpointFolder, name: str) -> tuple[Note, BinaryIO]:
    """The note, and the file at its start; it is the one that was written.

    Raises CheckpointNotFound, CheckpointCorrupt.
    """
    note, path = folder.find(name), folder.state_of(name)
    with ExitStack() as opened:
        try:
            file = opened.enter_context(path.open("rb"))
            digest = file_digest(file, "sha256").hexdigest()
            file.seek(0)
        except OSError as error:
            raise CheckpointCorrupt(f"{path} cannot be read: {error.strerror}; restore another one") from error
        if digest != note.sha256:
            raise CheckpointCorrupt(f"{path}: the file is not the one that was written; restore another one")
        opened.pop_all()
    return note, file


def receive(folder: CheckpointFolder, name: str, size: int) -> ReceivedFile:
    """A new file aside, to be written and placed or discarded; at least `size` bytes are to come.

    Raises JournalUnavailable where the disk fails, or has no room for it.
    """
    with folder.told(), ExitStack() as opened:
        folder.files.make()
        sweep(folder.path)
        received = ReceivedFile(folder.files, name, folder.floor_bytes)
        opened.callback(received.discard)
        received.require_room(size)
        opened.pop_all()
    return received


def same(folder: CheckpointFolder, name: str, digest: str | None, size: int | None) -> Note | None:
    """The checkpoint of this name if its file has this SHA-256 (hex) and size, None if there is no such name. What is
    not known of them, None, is taken for the same.

    Raises CheckpointExists for another one and for a file without a note, CheckpointCorrupt.
    """
    if not folder.has(name):
        return folder.made_by(name, None)
    note = folder.find(name)
    if digest not in (None, note.sha256) or size not in (None, note.bytes):
        raise CheckpointExists(f"there is another checkpoint {name!r}, and it stays as it is: choose another name")
    return note


def place(folder: CheckpointFolder, received: ReceivedFile, note: Note) -> tuple[Note, bool]:
    """Give what was received its name, with this note of it: (the checkpoint's note, whether it is new).

    Where the same file is there under that name, it stays. Raises as `same`, and JournalUnavailable.
    """
    with received.turn, folder.told():
        if same(folder, note.name, note.sha256, note.bytes) is not None:
            known, file = open_file(folder, note.name)
            file.close()
            return known, False
        received.sync()
        with folder.files.making(received.path, folder.state_of(note.name)):
            folder.files.put(folder.note_of(note.name), msgspec.json.encode(note))
    return note, True
