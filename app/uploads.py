"""Takes a body that is a file, in pieces, past the limit of other bodies: to the disk and not into memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from core.errors import Invalid
from core.snapshot.checkpoint_folder import CheckpointFolder
from core.snapshot.checkpoint_transfers import receive
from core.snapshot.received_file import ReceivedFile

from .errors import BodyTooLarge, UnsupportedMediaType
from .file_reply import PIECE
from .incoming import Incoming
from .media_types import OCTETS


def check_upload(call: Incoming) -> None:
    """What is asked of the headers of a file. Raises UnsupportedMediaType, BodyTooLarge."""
    if call.content_type not in ("", OCTETS):
        raise UnsupportedMediaType(f"send the file as it is, with Content-Type: {OCTETS} (curl -T FILE sends none)")
    _check_size(call, call.declared_bytes or 0)


@asynccontextmanager
async def uploaded(
    call: Incoming, folder: CheckpointFolder, name: str, digest: str | None
) -> AsyncIterator[ReceivedFile]:
    """The whole body in a file aside, which is gone at the end unless it was placed; `digest`: its SHA-256 in hex.

    Raises Invalid for another digest, BodyTooLarge, JournalUnavailable; ClientDisconnect where it ends too early.
    """
    received = await asyncio.to_thread(receive, folder, name, call.declared_bytes or 0)
    try:
        async for piece in _pieces(call):
            _check_size(call, received.bytes + len(piece))
            await asyncio.to_thread(_write, folder, received, piece)
        if digest not in (None, received.sha256):
            raise Invalid.at(
                "header.Repr-Digest", f"is not that of what came, whose SHA-256 is {received.sha256}: send it again"
            )
        yield received
    finally:
        # To delete a large file takes long; where the task is cancelled it is done all the same.
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, received.discard))


def _write(folder: CheckpointFolder, received: ReceivedFile, piece: bytes) -> None:
    with folder.told():
        received.write(piece)


def _check_size(call: Incoming, size: int) -> None:
    most = call.edge.settings.max_checkpoint_bytes
    if size > most:
        raise BodyTooLarge(f"a checkpoint's file may have {most} bytes (limits.max_checkpoint_bytes)")


async def _pieces(call: Incoming) -> AsyncIterator[bytes]:
    """The body in pieces of about a mebibyte."""
    parts: list[bytes] = []
    size = 0
    async for part in call.parts():
        parts.append(part)
        size += len(part)
        if size >= PIECE:
            yield b"".join(parts)
            parts, size = [], 0
    if size:
        yield b"".join(parts)
