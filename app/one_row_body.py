"""Reads the body of a one-row produce. If its form came before, only its sizes are read.

A form is told by the bytes of `field_schema` with every digit made a 0, and by those of `backend_meta`. The digits in
names and dtypes are compared, the other numbers are the sizes. What is wrong in any way is left to the whole decoder.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

import msgspec
from msgspec import Raw

from batchmeta.wire.requests import FieldSchema, Produce
from core.state.cells.signatures import Memo
from core.writing.forms import Form, OneRow

from .convert import columns
from .pieces import Decoder, Pieces

MOST = 16_384  # bytes of a body that is looked at
_DIGITS = b"0123456789"
_PATTERN = bytes.maketrans(_DIGITS, b"0" * 10)
_SPACED = bytes(byte if byte in _DIGITS else 32 for byte in range(256))
_RUN = re.compile(rb"[0-9]+")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NUMBER = re.compile(rb"[-+.0-9eE]*[0-9][-+.0-9eE]*")
_PLAIN = re.compile(rb"0|[1-9][0-9]{0,8}")  # below 2^31
_RAW = ("field_schema", "backend_meta")


@dataclass(frozen=True, slots=True)
class _Known:
    """A form, and which of the runs of digits in its text are sizes, which are `said` in every text of it."""

    form: Form
    sizes: list[int]
    others: list[int]
    said: list[bytes]

    def row(self, runs: list[bytes]) -> OneRow | None:
        """The row of a text with these runs of digits; None where it is not of this form after all."""
        if [runs[at] for at in self.others] != self.said:
            return None
        return OneRow(self.form, [int(runs[at]) for at in self.sizes])


class ProduceReader(Pieces[Produce]):
    """As `Pieces(Produce)`; the `field_schema` of what it reads may be a OneRow."""

    def __init__(self, takes: type[Produce]) -> None:
        super().__init__(takes)
        self._brief = Decoder[Any](_brief(takes))
        self._forms: Memo[tuple[bytes, bytes], _Known] = Memo()

    def at_once(self, body: bytes) -> Produce:
        found = self._short(body) if len(body) <= MOST else None
        return super().at_once(body) if found is None else found

    def _short(self, body: bytes) -> Produce | None:
        try:
            brief = self._brief.decode(body)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return None
        rows = brief.global_indexes if brief.keys is None else brief.keys
        if rows is None or len(rows) != 1 or b"[" in bytes(brief.backend_meta):
            return None
        text, cells = bytes(brief.field_schema), bytes(brief.backend_meta)
        known = self._forms.get((text.translate(_PATTERN), cells))
        if known is None:
            return self._learn(body, text, cells)
        row = known.row(text.translate(_SPACED).split())
        return None if row is None else _whole(brief, row)

    def _learn(self, body: bytes, text: bytes, cells: bytes) -> Produce:
        whole = super().at_once(body)
        known = _known(whole, text)
        if known is not None:
            self._forms.put((text.translate(_PATTERN), cells), known)
        return whole


def _brief(takes: type[Produce]) -> type[msgspec.Struct]:
    """The same members, those of fields undecoded."""
    hints = get_type_hints(takes, include_extras=True)
    members: list[Any] = [
        (field.name, Raw) if field.name in _RAW else (field.name, hints[field.name], None)
        for field in msgspec.structs.fields(takes)
    ]
    return msgspec.defstruct("Brief", members, kw_only=True, forbid_unknown_fields=True, omit_defaults=True)


def _whole(brief: Any, row: OneRow) -> Produce:
    return Produce(
        field_schema=row,  # type: ignore[arg-type]  # a mapping is what it stands for
        backend_meta=row.form.backend_meta,  # type: ignore[arg-type]
        global_indexes=brief.global_indexes,
        keys=brief.keys,
        create=brief.create,
        custom_meta=brief.custom_meta,
        custom_meta_mode=brief.custom_meta_mode,
        group_ids=brief.group_ids,
        on_cleared=brief.on_cleared,
    )


def _known(whole: Produce, text: bytes) -> _Known | None:
    """The form of this body; None where its numbers are not its sizes, in their order, in the plainest form."""
    blank = _STRING.sub(lambda string: b'"' * len(string[0]), text)
    numbers = _NUMBER.findall(blank)
    if not all(map(_PLAIN.fullmatch, numbers)) or list(map(int, numbers)) != _sizes(whole.field_schema):
        return None
    runs = list(_RUN.finditer(text))
    is_size = [blank[run.start()] in _DIGITS for run in runs]
    others = [at for at, is_one in enumerate(is_size) if not is_one]
    return _Known(
        Form(whole.field_schema, columns(whole.backend_meta)),
        [at for at, is_one in enumerate(is_size) if is_one],
        others,
        [runs[at][0] for at in others],
    )


def _sizes(schemas: Mapping[str, FieldSchema]) -> list[int]:
    """All sizes of one row's schemas, as a write has them."""
    found: list[int] = []
    for schema in schemas.values():
        for column in (schema.lengths, schema.shapes, schema.shape):
            values: Any = column if column is None or isinstance(column, list) else column.const
            found += _flat(values)
    return found


def _flat(values: Any) -> list[int]:
    if isinstance(values, list):
        return [size for part in values for size in _flat(part)]
    return [] if values is None else [values]
