"""Signatures: the names, kinds, dtypes and ranks of a write's fields, without its rows. Workers repeat the same one.

A signature is handled as bytes, in events and as a key, so that its placement is computed once and then looked up.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

K = TypeVar("K")
V = TypeVar("V")
MEMO = 1024


class FieldSignature(Struct, array_like=True, frozen=True):
    """One field of a write. `ragged`: the write makes it so. `rank` None: no tensor, or a write of no rows."""

    name: str
    kind: str
    dtype: str | None
    ragged: bool
    rank: int | None


FieldKey = tuple[str, str | None, str | None, bool | None, int | None, type, type, type]
SignatureKey = tuple[FieldKey, ...]
"""A signature as in the call: per field name, kind, dtype, ragged, rank, types of lengths, shapes, shape."""


class Memo(dict[K, V], Generic[K, V]):
    """A cache that is emptied before it grows beyond MEMO entries; entries in use are soon added again."""

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
