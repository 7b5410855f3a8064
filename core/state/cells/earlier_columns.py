"""Finds equal columns of one reply: the first stands in full, the others refer to it (contract#share-columns)."""

from .encode import Piece, Pieces
from .fields import Field

_ENDS = 64


class EarlierColumns:
    """The columns that were told in full so far.

    Columns are mostly told apart by their length and ends; only where these are equal is the rest looked at, and hashed
    where it differs, so that many columns alike at their ends cost no more than their bytes.
    """

    __slots__ = ("_by_ends", "_by_text")

    def __init__(self) -> None:
        self._by_ends: dict[tuple[int, bytes, bytes], tuple[Piece, Field]] = {}
        self._by_text: dict[bytes, Field] = {}

    def told(self, field: Field, column: Pieces) -> Pieces:
        """The column of `field` as it is, or a reference to the field whose column is the same bytes."""
        first = self._first(field, _inner(column))
        return column if first is field else [reference(first)]

    def _first(self, field: Field, text: Piece) -> Field:
        first, owner = self._by_ends.setdefault((len(text), bytes(text[:_ENDS]), bytes(text[-_ENDS:])), (text, field))
        if owner is field or first is text:
            return owner
        whole = bytes(text)
        return owner if bytes(first) == whole else self._by_text.setdefault(whole, field)


def _inner(column: Pieces) -> Piece:
    """What stands between the brackets of an array, in whatever pieces it comes."""
    if len(column) > 1:
        return column[1]
    return column[0][1:-1] if column[0][:1] == b"[" else column[0]


def reference(field: Field) -> bytes:
    """The column that says: the same as that of `field`."""
    return b'{"same_as":' + field.quoted[:-1] + b"}"
