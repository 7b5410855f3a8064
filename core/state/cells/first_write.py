"""The fields of a partition after its first write, made once for all writes that are alike and copied for each.

Thousands of small partitions begin with the same fields, and a restart makes all of them anew.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from core.events import Produced

from .fields import Field
from .placements import Placement, place
from .readiness import WORD
from .signatures import FieldSignature, from_bytes

KEPT = 64  # signatures, each with the sizes of its fields that are not ragged


def first_placement(event: Produced) -> Placement:
    """The placement of a write to a partition that never had a field, in fields that are to be copied by `new_fields`.

    Nobody may change these: they have their schemas and no cells.
    """
    found = _placement(event.signature, None)
    if not found.fixed:
        return found
    return _placement(event.signature, np.frombuffer(event.sizes, "<i4").take(found.fixed_at).tobytes())


def new_fields(placement: Placement, cells: Sequence[bytes | list[bytes]]) -> dict[str, Field]:
    """By name. `cells` of each: a constant, which the field then has, or a column, which is still to be put."""
    return {field.name: field.anew(cell) for field, cell in zip(placement.fields, cells, strict=True)}


@lru_cache(KEPT)
def _placement(signature: bytes, sizes: bytes | None) -> Placement:
    """`sizes` int32 of all fields that are not ragged; None: their shapes are not known."""
    signatures = from_bytes(signature)
    fields = _fields(signatures)
    width = max(1, -(-len(fields) // WORD))
    found = place(signatures, fields, width)
    if sizes is None:
        return found
    left = iter(np.frombuffer(sizes, "<i4").tolist())
    for one in found.fixed:
        one.field.take_shape(tuple(next(left) for _ in range(one.first, one.last)), has_others=False)
    return place(signatures, fields, width)


def _fields(signatures: Sequence[FieldSignature]) -> list[Field]:
    fields, slot = [], 0
    for bit, one in enumerate(signatures):
        field = Field(one.name, bit, None)
        field.become(one, slot)
        if one.ragged and one.rank is not None:
            field.become_ragged()
        fields.append(field)
        slot += one.rank or 0
    return fields
