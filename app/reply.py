"""A reply to one call: its status, its headers and its body, encoded. The renderers in app/routes make them.

Columns are JSON bytes already and are passed through; only the small parts are encoded here.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET, Raw

from core.slices import Sliced
from core.state.cells.encode import Pieces

Headers = list[tuple[bytes, bytes]]
encode_json = msgspec.json.Encoder().encode
EtagOf = Callable[[int], str]
STEP = 2**21  # bytes of a large body that are put in place in one step


APART: Any = Raw(b"\0")
"""Stands in a body for what is put in its place at the end; JSON text never holds this byte."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Status and body bytes, made in the engine's thread; a GET's with an `etag` may be cached and revalidated.

    `is_kept`: the same Idempotency-Key gets it again; `replayed`: this is such a one.
    """

    status: int
    body: bytes | memoryview
    etag: str | None = None
    is_kept: bool = True
    replayed: bool = False

    def add_headers(self, headers: Headers, method: str) -> None:
        """What HTTP says of it, in answer to this method."""
        if self.status != 304:  # whose length would be that of the 200
            headers += [(b"content-length", b"%d" % len(self.body)), (b"content-type", b"application/json")]
        if self.replayed:
            headers.append((b"idempotency-replayed", b"true"))
        if self.etag is not None:
            headers.append((b"etag", self.etag.encode("latin-1")))
        if self.etag is not None and method in ("GET", "HEAD"):
            headers += [(b"cache-control", b"no-cache"), (b"vary", b"Accept")]
        else:
            headers.append((b"cache-control", b"no-store"))


def reply(
    body: object, status: int = 200, etag: str | None = None, is_kept: bool = True, apart: Sequence[Pieces] = ()
) -> Reply:
    """A body, encoded. `is_kept`: as in Reply. `apart`: what each `APART` in it stands for, in their order.

    The encoder's buffer grows as it goes, which copies what is large several times over; pieces are copied once.
    """
    text = encode_json(body)
    if apart:
        text = b"".join(_filled(text, apart))
    return Reply(status, text, etag, is_kept)


def large_reply(
    body: msgspec.Struct,
    status: int = 200,
    etag: str | None = None,
    is_kept: bool = True,
    apart: Sequence[Pieces] = (),
) -> Sliced[Reply]:
    """As `reply`, for a body of megabytes: its columns are not encoded with the rest but copied once, in slices."""
    columns = list(_set_apart(body, iter(apart)))
    return _joined(_filled(encode_json(body), columns), status, etag, is_kept)


def _set_apart(body: msgspec.Struct, apart: Iterator[Pieces]) -> Iterator[Pieces]:
    """Put `APART` in the place of every column. All columns, in their order."""
    for name in body.__struct_fields__:
        value = getattr(body, name)
        if value is APART:
            yield next(apart)
        elif isinstance(value, Raw):
            yield [memoryview(value)]
            setattr(body, name, APART)
        elif isinstance(value, msgspec.Struct):
            yield from _set_apart(value, apart)


def _filled(text: bytes, apart: Sequence[Pieces]) -> Pieces:
    """The pieces of a body, each column in its place."""
    between = text.split(b"\0")
    return [piece for before, column in zip(between, [*apart, []], strict=True) for piece in (before, *column)]


def _joined(pieces: Pieces, status: int, etag: str | None, is_kept: bool) -> Sliced[Reply]:
    text = np.empty(sum(map(len, pieces)), np.uint8).data  # a bytearray would be filled with zeros first
    at = done = 0
    for piece in pieces:
        for first in range(0, len(piece), STEP):
            part = memoryview(piece)[first : first + STEP]
            text[at : at + len(part)] = part
            at += len(part)
            if at - done >= STEP:
                done = at
                yield
    return Reply(status, text, etag, is_kept)


def rfc3339(seconds: float) -> str:
    """Unix seconds as RFC 3339 in UTC, milliseconds kept."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def by_field(columns: bytes | None) -> Any:
    """An object of columns by field, which is JSON already, or no member."""
    return UNSET if columns is None else Raw(columns)
