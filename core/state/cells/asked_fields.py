"""Prepares a list of fields that readers ask for. It is kept until a field of the partition changes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from core.arrays import Ints

from . import encode
from .earlier_columns import EarlierColumns
from .fields import Field
from .readiness import mask_of
from .shapes import together

ONE, CONST, SHARED = "one", "const", "shared"


@dataclass(frozen=True, slots=True)
class Ragged:
    """A ragged field in a reply. `flat`: its column has lengths; `sizes`: where its sizes are among those gathered,
    None while it has none.
    """

    field: Field
    flat: bool
    sizes: slice | None


@dataclass(frozen=True, slots=True)
class SchemaText:
    """The JSON of schemas without their columns: `texts[i]` is followed by the column of `ragged[i]`.

    `slots`: of the size table, those to gather. `is_rank_1`: every ragged field has sizes, of rank 1. `of_one_row`: the
    whole JSON object for one row, with a place for the size of each, to be used if so.
    """

    texts: list[bytes]
    ragged: list[Ragged]
    slots: slice | Ints
    is_rank_1: bool
    of_one_row: bytes

    def filled(self, columns: Sequence[bytes]) -> bytes:
        """The JSON object, with these columns."""
        parts = [b""] * (2 * len(columns) + 1)
        parts[::2], parts[1::2] = self.texts, columns
        return b"".join(parts)


class AskedFields:
    """`fields` and their `names` in the order asked, once each, and their bits, `mask` int64 [words].

    `missing`: names that the partition does not know.
    """

    __slots__ = ("_constant", "_masks", "_schemas", "fields", "mask", "missing", "names")

    def __init__(self, names: Iterable[str], known: Mapping[str, Field], width: int) -> None:
        asked = dict.fromkeys(names)
        self.fields = tuple(known[name] for name in asked if name in known)
        self.names = tuple(field.name for field in self.fields)
        self.missing = tuple(name for name in asked if name not in known)
        self.mask: Ints = mask_of((field.bit for field in self.fields), width)
        self._masks: list[int] = self.mask.tolist()
        self._schemas: dict[bool, SchemaText] = {}
        self._constant: dict[str, encode.Pieces] | None = None

    def all_in(self, words: list[int]) -> bool:
        """Whether every row has all of the fields, by the words that all rows have in common, as int64."""
        return all(word & mask == mask for word, mask in zip(words, self._masks, strict=True))

    def schema_text(self, compact: bool) -> SchemaText:
        """Their schemas; `compact`: with lengths for rank 1."""
        found = self._schemas.get(compact)
        if found is None:
            found = self._schemas[compact] = _schema_text(self.fields, compact)
        return found

    def backend_meta(self, form: str) -> encode.Pieces | None:
        """The backend meta of rows that have all of the fields, if each has one cell for all rows.

        `form`: of ONE row, of more with CONST columns, or those with equal ones SHARED.
        """
        if self._constant is None:
            self._constant = _constant_cells(self.fields)
        return self._constant.get(form)


def _schema_text(fields: Sequence[Field], compact: bool) -> SchemaText:
    texts, text = [], b"{"
    ragged: list[Ragged] = []
    slots: list[int] = []
    for at, field in enumerate(fields):
        flat = _is_flat(field, compact)
        text += (b"," if at else b"") + field.quoted + field.head(flat)
        if field.ragged:
            own = [] if field.slot is None else range(field.slot, field.slot + (field.rank or 0))
            place = None if field.slot is None else slice(len(slots), len(slots) + len(own))
            ragged.append(Ragged(field, flat, place))
            slots += own
            texts.append(text)
            text = b"}"
    is_rank_1 = all(one.sizes is not None and one.field.rank == 1 for one in ragged)
    texts.append(text + b"}")
    return SchemaText(texts, ragged, together(slots), is_rank_1, _of_one_row(texts, ragged))


def _of_one_row(texts: Sequence[bytes], ragged: Sequence[Ragged]) -> bytes:
    places = [b"[%d]" if one.flat else b"[[%d]]" for one in ragged]
    quoted = [text.replace(b"%", b"%%") for text in texts]
    return b"".join(part for pair in zip(quoted, [*places, b""], strict=True) for part in pair)


def _is_flat(field: Field, compact: bool) -> bool:
    """A column of lengths; of a field that was never written the rank may not be known."""
    return field.ragged and compact and (field.rank == 1 or (field.slot is None and field.rank is None))


def _constant_cells(fields: Sequence[Field]) -> dict[str, encode.Pieces]:
    cells = [field.backend.constant for field in fields]
    known = [cell for cell in cells if cell is not None]
    if len(known) < len(fields):
        return {}
    one = [encode.constant(cell, 1, False) for cell in known]
    const = [encode.constant(cell, 2, False) for cell in known]
    earlier = EarlierColumns()
    shared = [bytes(earlier.told(field, [column])[0]) for field, column in zip(fields, const, strict=True)]
    quoted = [field.quoted for field in fields]
    return {
        form: [encode.members(zip(quoted, columns, strict=True))]
        for form, columns in ((ONE, one), (CONST, const), (SHARED, shared))
    }
