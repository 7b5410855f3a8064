"""Forms of one-row writes. Two writes have one form if only the sizes in their schemas differ.

A worker writes row after row in one form. What that means is worked out once; of each further row its sizes are new.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from core.engine import Engine
from core.state.cells.json_cells import Column

from .schemas import FieldsWrite, SchemaIn, backend_columns, fields_write


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """`schemas` and `backend_meta` are those of its first row. A form is known by being the same object."""

    schemas: Mapping[str, SchemaIn]
    backend_meta: Mapping[str, Column]


@dataclass(frozen=True, slots=True)
class OneRow:
    """The schemas of one row: those of its form with other `sizes`, in the order in which they stand there."""

    form: Form
    sizes: list[int]


def fields_of(
    engine: Engine, schemas: Mapping[str, SchemaIn] | OneRow, backend_meta: Mapping[str, Column], rows: int
) -> FieldsWrite:
    """What a write of `rows` rows says of fields, checked. Raises Invalid, DtypeConflict."""
    if not isinstance(schemas, OneRow):
        cells = backend_columns(engine.cells, backend_meta, schemas, rows)
        return fields_write(engine.signatures, schemas, rows, cells)
    form = schemas.form
    known = engine.forms.get(form)
    if known is None:
        whole = fields_of(engine, form.schemas, form.backend_meta, rows)
        known = engine.forms.put(form, (whole.signature, whole.backend))
    return FieldsWrite(known[0], np.array([schemas.sizes], "<i4"), known[1])
