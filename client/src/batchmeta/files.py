"""Files that go to the service, and that come from it: in pieces, beside the event loop, a whole file or none."""

import asyncio
import os
import secrets
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import BinaryIO

import httpx

from .errors import UnreadableReply

OCTETS = "application/octet-stream"
PIECE = 2**20  # bytes


@dataclass(frozen=True, slots=True)
class FileToSend:
    """A file as it is when it is opened: its size, and its digest for `Repr-Digest` (RFC 9530)."""

    file: BinaryIO
    size: int
    digest: str

    @property
    def headers(self) -> dict[str, str]:
        """What a request says of it."""
        return {"Content-Type": OCTETS, "Content-Length": str(self.size), "Repr-Digest": self.digest}

    async def pieces(self) -> AsyncIterator[bytes]:
        """All of it, from its start."""
        left = self.size
        while left and (piece := await asyncio.to_thread(self.file.read, min(PIECE, left))):
            left -= len(piece)
            yield piece


def opened(path: Path) -> FileToSend:
    """The file at its start; close its `file`. Raises OSError."""
    file = path.open("rb")
    try:
        digest = file_digest(file, "sha256").digest()
        size = file.tell()
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return FileToSend(file, size, f"sha-256=:{b64encode(digest).decode()}:")


async def saved(answer: httpx.Response, path: Path, digest: str) -> None:
    """The body as the file `path`, which is replaced once all is on disk; `digest`: its SHA-256 in hex.

    Raises UnreadableReply for another body, OSError, httpx.RequestError.
    """
    with _aside(path) as (file, aside):
        found = sha256()
        async for piece in answer.aiter_bytes(PIECE):
            found.update(piece)
            await asyncio.to_thread(file.write, piece)
        if found.hexdigest() != digest:
            raise UnreadableReply(f"the file that came has the SHA-256 {found.hexdigest()}, not {digest}: ask again")
        await asyncio.to_thread(_place, file, aside, path)


@contextmanager
def _aside(path: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """A new file beside `path`, which is deleted where it was not renamed."""
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with aside.open("xb", buffering=0) as file:
            yield file, aside
    finally:
        with suppress(FileNotFoundError):
            aside.unlink()


def _place(file: BinaryIO, aside: Path, path: Path) -> None:
    os.fsync(file.fileno())
    aside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
