"""What a write says of its fields, without its rows: names, kinds, dtypes, ranks. Workers repeat it in each write.

A signature travels as its own bytes, inside events and as a key: what was worked out for one is kept for the next.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

K = TypeVar("K")
V = TypeVar("V")
MEMO = 1024


class FieldSignature(Struct, array_like=True, frozen=True):
    """One field. `ragged`: the write says so. `rank` None: no tensor, or shapes of no rows."""

    name: str
    kind: str
    dtype: str | None
    ragged: bool
    rank: int | None


FieldKey = tuple[str, str | None, str | None, bool | None, int | None, type, type, type]
SignatureKey = tuple[FieldKey, ...]
"""A signature as a caller said it: per field name, kind, dtype, ragged, rank, types of lengths, shapes, shape."""


class Memo(dict[K, V], Generic[K, V]):
    """A dict that forgets all before it grows beyond MEMO entries: what is in use comes back at once."""

    def put(self, key: K, value: V) -> V:
        """Remember `value`."""
        if len(self) >= MEMO:
            self.clear()
        self[key] = value
        return value


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[FieldSignature, ...]).decode


def to_bytes(fields: Sequence[FieldSignature]) -> bytes:
    """The signature as events carry it."""
    return _encode(fields)


def from_bytes(signature: bytes) -> tuple[FieldSignature, ...]:
    """The fields of a signature."""
    return _decode(signature)
