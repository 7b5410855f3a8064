"""The file of a checkpoint: an image behind the header that a journal's snapshots have, written and read back."""

import time
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from core.compression import packer
from core.errors import CheckpointCorrupt
from core.journal.contract import EntryId
from core.journal.segment import Damage, decode_snapshot, encode_snapshot_header
from core.state.cells.readiness import HostWords
from core.state.kept_replies import KeptReplies
from core.state.service import ServiceState

from .image import restore

NO_JOURNAL: Final = 0  # a checkpoint may be restored into any journal


@dataclass(frozen=True, slots=True)
class Saved:
    """An image that was read once, so it is whole; and what a restore needs to know of it beforehand."""

    image: bytes
    history: str
    revision: int
    next_index: int


def encode(last: EntryId, image: bytes) -> bytes:
    """The bytes of the file; `last` is the last journal entry that the image knows of."""
    stored = packer()(image)
    return encode_snapshot_header(NO_JOURNAL, last, stored) + stored


def read(path: Path, digest: str | None = None) -> Saved:
    """The state in a file; `digest` is the file's SHA-256, in hex. Raises CheckpointCorrupt."""
    try:
        data = path.read_bytes()
        if digest is not None and sha256(data).hexdigest() != digest:
            raise CheckpointCorrupt(f"{path}: the file is not the one that was written; restore another one")
        _, image = decode_snapshot(data, None)
    except OSError as error:
        raise CheckpointCorrupt(f"{path} cannot be read: {error.strerror}; restore another one") from error
    except ValueError as error:  # compressed as no file of ours is
        raise CheckpointCorrupt(f"{path}: {error}; restore another one") from error
    except Damage as damage:
        raise CheckpointCorrupt(f"{path}, byte {damage.offset}: {damage.what}; restore another one") from damage
    return looked_through(image)


def looked_through(image: bytes) -> Saved:
    """Reads the image into a state of its own, which is dropped. Raises CheckpointCorrupt."""
    scratch = ServiceState(time.monotonic, HostWords, KeptReplies())
    try:
        restore(scratch, image)
    except (ValueError, LookupError, TypeError, AttributeError, msgspec.MsgspecError) as error:
        raise CheckpointCorrupt(f"the image cannot be read by this version: {error}") from error
    return Saved(image, scratch.history, scratch.revision, scratch.next_index)
