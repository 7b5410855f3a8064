"""What a write says of its fields, without its rows: names, kinds, dtypes, ranks. Workers repeat it in each write.

A form travels as its own bytes, inside events and as a key: what was worked out for one is kept for the next.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

K = TypeVar("K")
V = TypeVar("V")
MEMO = 1024


class FieldForm(Struct, array_like=True, frozen=True):
    """One field. `ragged`: the write says so. `rank` None: no tensor, or shapes of no rows."""

    name: str
    kind: str
    dtype: str | None
    ragged: bool
    rank: int | None


FieldSaid = tuple[str, str | None, str | None, bool | None, int | None, type, type, type]
Said = tuple[FieldSaid, ...]
"""A form as a caller said it: per field name, kind, dtype, ragged, rank, and the types of lengths, shapes and shape."""


class Memo(dict[K, V], Generic[K, V]):
    """A dict that forgets all before it grows beyond MEMO entries: what is in use comes back at once."""

    def keep(self, key: K, value: V) -> V:
        """Remember `value`."""
        if len(self) >= MEMO:
            self.clear()
        self[key] = value
        return value


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[FieldForm, ...]).decode


def to_bytes(fields: Sequence[FieldForm]) -> bytes:
    """The form as events carry it."""
    return _encode(fields)


def from_bytes(form: bytes) -> tuple[FieldForm, ...]:
    """The fields of a form."""
    return _decode(form)
