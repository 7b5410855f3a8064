"""One field of a partition: its current schema, the slots of its sizes, and the backend meta of its cells.

A field knows nothing of readiness; callers pass the rows that have it (`holders`) where that matters.
"""

from collections.abc import Callable
from copy import copy
from functools import lru_cache

import numpy as np
import orjson

from core.arrays import Bits, Ints
from core.errors import DtypeConflict, KindConflict
from core.events import Declared

from . import encode
from .json_buffer import JsonBuffer
from .json_cells import NULL
from .signatures import FieldSignature

Holders = Callable[[], Ints]


@lru_cache(4096)
def _quoted(name: str) -> bytes:
    return orjson.dumps(name) + b":"


class CellColumn:
    """One JSON cell per row: a constant that every row with the field has, or a column of them."""

    __slots__ = ("cells", "const")

    def __init__(self, const: bytes = NULL) -> None:
        self.const = const
        self.cells: JsonBuffer | None = None

    @property
    def constant(self) -> bytes | None:
        """The cell of every row with the field; None where they differ."""
        return self.const if self.cells is None else None

    def forget_const(self) -> None:
        """No row has the field any more: drop the constant. Cells that were set for rows without the field stay."""
        self.const = NULL

    def put(self, rows: Ints, value: bytes | list[bytes], holders: Holders, capacity: int) -> None:
        """Set the cells of `rows`; `holders` are the other rows, those that have the constant so far."""
        if self.cells is None and isinstance(value, bytes) and (value == self.const or not len(holders())):
            self.const = value
            return
        if self.cells is None:
            self.spread(holders(), capacity)
        assert self.cells is not None  # noqa: S101  (for the type checker: spread has just made it)
        self.cells.put(rows, value)

    def spread(self, holders: Ints, capacity: int) -> None:
        """From a constant to a column."""
        if self.cells is None:
            self.cells = JsonBuffer(capacity)
            self.cells.put(holders, self.const)

    def recorded(self) -> Ints:
        """Rows with a cell of their own that is not null."""
        return np.empty(0, np.int64) if self.cells is None else self.cells.recorded()

    def is_recorded(self, rows: slice | Ints) -> bool:
        """Some of these rows have a cell of their own that is not null."""
        return self.cells is not None and bool(self.cells.start[rows].any())

    def resize(self, capacity: int) -> None:
        if self.cells is not None:
            self.cells.resize(capacity)

    def compact(self, rows: Ints, capacity: int) -> None:
        if self.cells is not None:
            self.cells.compact(rows, capacity)

    def clear(self, rows: Ints) -> None:
        if self.cells is not None:
            self.cells.clear(rows)

    def at(self, rows: slice | Ints, has: Bits | None) -> bytes | list[bytes]:
        """The cells of `rows`; `has` says which rows have the field (None: all)."""
        if self.cells is not None:
            return self.cells.cells(rows)
        if has is None or self.const == NULL:
            return self.const
        return np.array([NULL, self.const], object)[has].tolist()  # type: ignore[no-any-return]

    def picked(self, rows: Ints) -> "CellColumn":
        """A column of these rows alone, which stays as it is now."""
        out = CellColumn()
        out.const, out.cells = self.const, None if self.cells is None else self.cells.picked(rows)
        return out

    def column(self, rows: slice | Ints, count: int, has: Bits | None, expand: bool) -> encode.Pieces:
        """The cells of `rows`, `count` of them, as a JSON column."""
        if self.cells is not None:
            cells, is_even = self.cells.joined(rows)
            return encode.folded(cells, count, is_even, expand)
        found = self.at(rows, has)
        if isinstance(found, bytes):
            return [encode.constant(found, count, expand)]
        return [encode.column(found, expand)]


class Field:
    """Schema (kind, dtype, rank, ragged, shape while not ragged), bit and slot numbers, backend meta."""

    __slots__ = (
        "_heads",
        "backend",
        "bit",
        "declared",
        "dtype",
        "kind",
        "name",
        "quoted",
        "ragged",
        "rank",
        "shape",
        "slot",
    )

    def __init__(self, name: str, bit: int, declared: Declared | None) -> None:
        self.name = name
        self.quoted = _quoted(name)
        self.bit = bit
        self.backend = CellColumn()
        self.declare(declared)

    def declare(self, declared: Declared | None) -> None:
        """No sample has the field: reset its schema to the declaration, or to nothing."""
        self.declared = declared
        self.kind: str | None = declared.kind if declared else None
        self.dtype: str | None = declared.dtype if declared else None
        self.shape: tuple[int, ...] | None = declared.shape if declared else None
        self.rank: int | None = None if self.shape is None else len(self.shape)
        self.ragged: bool = bool(declared and declared.ragged)
        self.slot: int | None = None
        self._heads: dict[bool, bytes] = {}

    def adopt(self, declared: Declared) -> None:
        """Take a declaration that comes after the first write and does not contradict it."""
        self.declared = declared
        if self.kind == "tensor" and not self.ragged and (declared.ragged or declared.shape not in (None, self.shape)):
            self.become_ragged()

    def become(self, signature: FieldSignature, slot: int) -> None:
        """Take the schema of the first write."""
        self.kind, self.dtype, self.rank, self.slot = signature.kind, signature.dtype, signature.rank, slot
        self._heads = {}

    def become_ragged(self) -> None:
        """From now on samples may differ in shape."""
        self.ragged = True
        self._heads = {}

    def take_shape(self, shape: tuple[int, ...], has_others: bool) -> None:
        """A write of one shape to a field that is not ragged: the field takes it, or becomes ragged."""
        if self.shape is not None and self.shape != shape and (has_others or self._is_declared_otherwise()):
            self.become_ragged()
        else:
            self.shape = shape
            self._heads = {}

    def _is_declared_otherwise(self) -> bool:
        return self.declared is not None and self.declared.shape is not None

    def check(self, given: FieldSignature | Declared) -> None:
        """Raises KindConflict or DtypeConflict where a write or a declaration contradicts the schema."""
        if self.kind is None:
            return
        if given.kind != self.kind:
            raise KindConflict(
                f"field {self.name!r} is of kind {self.kind}, not {given.kind}: use another field name",
                fields=[self.name],
            )
        if given.dtype != self.dtype:
            raise DtypeConflict(f"field {self.name!r} has dtype {self.dtype}, not {given.dtype}", fields=[self.name])
        rank = _rank_of(given)
        if None not in (self.rank, rank) and self.rank != rank:
            raise DtypeConflict(f"field {self.name!r} has rank {self.rank}, not {rank}", fields=[self.name])

    def anew(self, cells: bytes | list[bytes]) -> "Field":
        """A field of another partition with this schema, and this constant. Both have one dict of `_heads`, which a
        change of a schema replaces. Member by member: `copy` takes five times as long, and there are many fields.
        """
        out = Field.__new__(Field)
        out.name, out.quoted, out.bit, out.slot = self.name, self.quoted, self.bit, self.slot
        out.kind, out.dtype, out.shape, out.rank = self.kind, self.dtype, self.shape, self.rank
        out.ragged, out.declared, out._heads = self.ragged, self.declared, self._heads  # noqa: SLF001  (its own class)
        out.backend = CellColumn(cells if isinstance(cells, bytes) else NULL)
        return out

    def picked(self, rows: Ints) -> "Field":
        """The field with the cells of these rows alone, which stays as it is now."""
        out = copy(self)
        out.backend, out._heads = self.backend.picked(rows), {}  # noqa: SLF001  (its own class)
        return out

    def head(self, flat: bool) -> bytes:
        """Its schema in a batch as JSON; where it is ragged, only the part before the column of shapes."""
        head = self._heads.get(flat)
        if head is None:
            head = self._heads[flat] = self._head(flat)
        return head

    def _head(self, flat: bool) -> bytes:
        if self.kind != "tensor":
            return b'{"kind":"object"}'
        start = b'{"kind":"tensor","dtype":' + orjson.dumps(self.dtype) + b',"ragged":'
        if not self.ragged:
            return start + b'false,"shape":' + orjson.dumps(self.shape) + b"}"
        return start + (b'true,"lengths":' if flat else b'true,"shapes":')


def _rank_of(given: FieldSignature | Declared) -> int | None:
    """The rank in a write's signature or a declaration; None where it gives none."""
    if isinstance(given, FieldSignature):
        return given.rank
    return None if given.shape is None else len(given.shape)
