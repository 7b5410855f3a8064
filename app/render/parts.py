"""What every kind of reply is made of: the encoder, times, and columns that are JSON bytes already."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from core.state.cells.encode import Pieces

from ..incoming import Reply

_encode = msgspec.json.Encoder().encode
EtagOf = Callable[[int], str]


APART: Any = Raw(b"\0")
"""Stands in a body for what is put in its place at the end; JSON text never holds this byte."""


def reply(
    body: object, status: int = 200, etag: str | None = None, is_kept: bool = True, apart: Pieces | None = None
) -> Reply:
    """A body, encoded. `is_kept`: for the same key (app/incoming.py). `apart`: what `APART` in it stands for.

    The encoder's buffer grows as it goes, which copies what is large several times over; pieces are copied once.
    """
    text = _encode(body)
    if apart is not None:
        before, _, after = text.partition(b"\0")
        text = b"".join((before, *apart, after))
    return Reply(status, text, etag, is_kept)


def rfc3339(seconds: float) -> str:
    """Unix seconds as RFC 3339 in UTC, milliseconds kept."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def maybe(column: bytes | None) -> Raw | UnsetType:
    """A column, or no member."""
    return UNSET if column is None else Raw(column)


def by_field(columns: bytes | None) -> Any:
    """An object of columns by field, which is JSON already, or no member."""
    return UNSET if columns is None else Raw(columns)
