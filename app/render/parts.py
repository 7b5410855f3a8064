"""What every kind of reply is made of: the encoder, times, and columns that are JSON bytes already."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ..incoming import Reply

_encode = msgspec.json.Encoder().encode
EtagOf = Callable[[int], str]


def reply(body: object, status: int = 200, etag: str | None = None, keep: bool = True) -> Reply:
    """A body, encoded. `keep`: for the same key (app/incoming.py)."""
    return Reply(status, _encode(body), etag, keep)


def rfc3339(seconds: float) -> str:
    """Unix seconds as RFC 3339 in UTC, milliseconds kept."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def maybe(column: bytes | None) -> Raw | UnsetType:
    """A column, or no member."""
    return UNSET if column is None else Raw(column)


def by_field(columns: bytes | None) -> Any:
    """An object of columns by field, which is JSON already, or no member."""
    return UNSET if columns is None else Raw(columns)
