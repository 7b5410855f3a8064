"""A reply whose body is a file: it is read in pieces, each when the client has taken those before."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import BinaryIO

from starlette.types import Send

from .digests import repr_digest
from .reply import Headers, Reply

PIECE = 2**20  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReply(Reply):
    """An open file of `size` bytes, which is closed once it is sent. `sha256`: its own, in hex; `name`: to save it."""

    file: BinaryIO
    size: int
    sha256: str
    name: str

    def add_headers(self, headers: Headers, method: str) -> None:  # noqa: ARG002  (those of a HEAD are the same)
        """What HTTP says of it: RFC 9110, of its digest RFC 9530."""
        headers += [
            (b"content-length", b"%d" % self.size),
            (b"content-type", b"application/octet-stream"),
            (b"content-disposition", f'attachment; filename="{self.name}"'.encode()),
            (b"repr-digest", repr_digest(self.sha256)),
            (b"etag", (self.etag or "").encode()),
            (b"cache-control", b"no-cache"),
            (b"vary", b"Accept"),
        ]

    async def send_file(self, send: Send, gone: Callable[[], Awaitable[None]], method: str) -> None:
        """The body, unless a HEAD asked or the client leaves. Where the file ends too early, so does the connection."""
        leaving = asyncio.ensure_future(gone())
        try:
            left = self.size if method == "GET" else 0
            while left and not leaving.done():
                piece = await asyncio.to_thread(self.file.read, min(PIECE, left))
                if not piece:
                    return
                left -= len(piece)
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            leaving.cancel()
            self.file.close()
