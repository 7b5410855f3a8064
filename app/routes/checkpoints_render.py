"""Renders replies about checkpoints: saved ones, lists of them, and what a restore did."""

from typing import BinaryIO

import numpy as np

from batchmeta.wire import replies
from core.arrays import Ints
from core.operations.checkpoints import Went
from core.snapshot.checkpoint_folder import STATE, Note

from ..file_reply import FileReply
from ..reply import Reply, reply


def _described(note: Note) -> replies.Checkpoint:
    """Without the key: it is the caller's alone."""
    return replies.Checkpoint(
        name=note.name, revision=note.revision, bytes=note.bytes, sha256=note.sha256, created_at=note.created_at
    )


def checkpoint(note: Note, status: int = 200) -> Reply:
    """One checkpoint, made (201) or found."""
    return reply(_described(note), status)


def content(note: Note, file: BinaryIO) -> Reply:
    """The file of one."""
    return FileReply(
        200, b"", f'"{note.sha256}"', file=file, size=note.bytes, sha256=note.sha256, name=f"{note.name}{STATE}"
    )


def checkpoints(notes: list[Note]) -> Reply:
    """All checkpoints."""
    return reply(replies.CheckpointList(checkpoints=list(map(_described, notes))))


def deleted_checkpoint() -> Reply:
    """An empty object."""
    return reply(replies.DeletedCheckpoint())


def went(found: Went) -> Reply:
    """The new epoch, samples whose bytes may be gone, and indexes that are not given out again."""
    revived = replies.Revived(count=len(found.revived), ranges=_ranges(found.revived))
    return reply(replies.Restored(epoch=found.epoch, revived=revived, burnt=found.burnt))


def _ranges(indexes: Ints) -> list[tuple[int, int]]:
    """Ascending indexes as runs, both ends inclusive."""
    if not len(indexes):
        return []
    breaks = np.flatnonzero(np.diff(indexes) != 1)
    first = indexes[np.concatenate([[0], breaks + 1])]
    last = indexes[np.concatenate([breaks, [len(indexes) - 1]])]
    return list(zip(first.tolist(), last.tolist(), strict=True))
