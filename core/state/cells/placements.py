"""The placement of a signature in one partition: the bits and slots of its fields. Computed once, valid until a field
changes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from core.arrays import Ints

from .fields import Field
from .readiness import mask_of
from .shapes import Sizes, together
from .signatures import FieldSignature


@dataclass(frozen=True, slots=True)
class Fixed:
    """A field that is not ragged, and the columns of its sizes in a write."""

    field: Field
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Placement:
    """`fields` in the order of the signature; `slots` (`width` of them) of its tensors in the size table.

    `turning`: fields that this signature makes ragged. `fixed_sizes`: the sizes at `fixed_at` if no shape changes;
    `settled`: every shape is known. `consts`: per field the cell that all its rows share, None where they differ.
    """

    fields: list[Field]
    mask: Ints
    bit_set: int
    bits: Ints
    slots: slice | Ints
    width: int
    turning: list[Field]
    fixed: list[Fixed]
    fixed_at: Ints
    fixed_sizes: bytes
    settled: bool
    consts: list[bytes | None]

    def keeps_shapes(self, sizes: Sizes) -> bool:
        """Whether a write of these sizes (int32 [rows or 1, slots]) leaves each field's schema as it is."""
        if self.turning or not self.settled:
            return False
        return not self.fixed or sizes[0].take(self.fixed_at).tobytes() == self.fixed_sizes


def bit_set(fields: Iterable[Field]) -> int:
    """The bits of these fields in one int, so that one AND tells whether two lists share a field."""
    return sum({1 << field.bit for field in fields})


def place(signatures: Sequence[FieldSignature], fields: list[Field], width: int) -> Placement:
    """The placement of a signature in these fields, all of which have their slots; `width` words per row."""
    slots: list[int] = []
    turning, fixed = [], []
    for signature, field in zip(signatures, fields, strict=True):
        if field.slot is None or signature.rank is None:
            continue
        if signature.ragged > field.ragged:
            turning.append(field)
        elif not field.ragged:
            fixed.append(Fixed(field, len(slots), len(slots) + signature.rank))
        slots += range(field.slot, field.slot + signature.rank)
    return Placement(
        fields,
        mask_of((field.bit for field in fields), width),
        bit_set(fields),
        np.array([field.bit for field in fields], np.int64),
        together(slots),
        len(slots),
        turning,
        fixed,
        np.array([at for one in fixed for at in range(one.first, one.last)], np.int64),
        np.array([size for one in fixed for size in one.field.shape or ()], "<i4").tobytes(),
        all(one.field.shape is not None for one in fixed),
        [field.backend.constant for field in fields],
    )
