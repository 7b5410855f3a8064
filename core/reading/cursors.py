"""Cursors: where the next page of a listing begins. Opaque to callers: a letter for the listing, then hex."""

import re

from core.errors import Invalid

_CURSOR = re.compile(r"([a-z])([0-9a-f]{1,16}(?:\.[0-9a-f]{1,16})*)")
_END = 2**63


def cursor_for(kind: str, *place: int) -> str:
    """The cursor of a place; `kind`, one letter per listing, lets a listing refuse the cursors of others."""
    return kind + ".".join(f"{part:x}" for part in place)


def place_of(cursor: str, kind: str, parts: int) -> tuple[int, ...]:
    """The place in a cursor, of this many parts. Raises Invalid for a cursor that this listing did not give."""
    match = _CURSOR.fullmatch(cursor)
    place = tuple(int(part, 16) for part in match[2].split(".")) if match is not None and match[1] == kind else ()
    if len(place) != parts or max(place) >= _END:
        raise Invalid.at("cursor", "is not one that this listing gave: take next_cursor as it is")
    return place


def start_of(cursor: str | None, kind: str, start: int = 0) -> int:
    """The place in a cursor, of one part; `start` without a cursor. Raises Invalid."""
    return start if cursor is None else place_of(cursor, kind, 1)[0]
