"""One field of a partition: its schema as it stands, the sizes of ragged rows, and the backend meta of its cells.

A field knows nothing of readiness; callers pass the rows that have it (`holders`) where that matters.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from .arrays import Cells, Ints, filled, grown
from .cells import NULL
from .errors import DtypeConflict, KindConflict
from .events import Declared, FieldWrite

Sizes = npt.NDArray[np.int32]
Holders = Callable[[], Ints]
LACKS = -1


class CellColumn:
    """One JSON cell per row: a constant that every row with the field has, or a column of them."""

    __slots__ = ("cells", "const")

    def __init__(self) -> None:
        self.const: bytes = NULL
        self.cells: Cells | None = None

    def forget_const(self) -> None:
        """No row has the field any more, so the constant is nobody's; cells set for rows without it stay."""
        self.const = NULL

    def put(self, rows: Ints, value: bytes | list[bytes], holders: Holders, capacity: int) -> None:
        """Set the cells of `rows`; `holders` are the other rows, those that have the constant so far."""
        if self.cells is None and isinstance(value, bytes) and (value == self.const or not len(holders())):
            self.const = value
            return
        if self.cells is None:
            self.spread(holders(), capacity)
        assert self.cells is not None  # noqa: S101  (for the type checker: spread has just made it)
        self.cells[rows] = value

    def spread(self, holders: Ints, capacity: int) -> None:
        """From a constant to a column."""
        if self.cells is None:
            self.cells = filled(capacity, NULL, object)
            self.cells[holders] = self.const

    def recorded(self) -> Ints:
        """Rows with a cell of their own that is not null."""
        return np.empty(0, np.int64) if self.cells is None else np.flatnonzero(self.cells != NULL)

    def resize(self, capacity: int) -> None:
        if self.cells is not None:
            self.cells = grown(self.cells, capacity, NULL)

    def keep(self, rows: Ints, capacity: int) -> None:
        if self.cells is not None:
            self.cells = grown(self.cells[rows], capacity, NULL)

    def clear(self, rows: Ints) -> None:
        if self.cells is not None:
            self.cells[rows] = NULL

    def at(self, rows: Ints, has: npt.NDArray[np.uint8] | None) -> bytes | list[bytes]:
        """The cells of `rows`; `has` says which rows have the field (None: all)."""
        if self.cells is not None:
            return self.cells[rows].tolist()  # type: ignore[no-any-return]
        if has is None or self.const == NULL:
            return self.const
        return [self.const if here else NULL for here in has.tolist()]


class Field:
    """Schema (kind, dtype, rank, ragged, shape), `sizes` int32 [rows, rank] while ragged, backend meta; bit number."""

    __slots__ = ("backend", "bit", "declared", "dtype", "kind", "name", "ragged", "rank", "shape", "sizes")

    def __init__(self, name: str, bit: int, declared: Declared | None) -> None:
        self.name = name
        self.bit = bit
        self.backend = CellColumn()
        self.declare(declared)

    def declare(self, declared: Declared | None) -> None:
        """As no sample had it: back to the declaration, or to nothing known."""
        self.declared = declared
        self.kind: str | None = declared.kind if declared else None
        self.dtype: str | None = declared.dtype if declared else None
        self.shape: tuple[int, ...] | None = declared.shape if declared else None
        self.rank: int | None = rank_of(self.shape)
        self.ragged: bool = bool(declared and declared.ragged)
        self.sizes: Sizes | None = None

    def adopt(self, declared: Declared, holders: Ints, capacity: int) -> None:
        """A declaration that comes after the first write, and does not contradict it."""
        self.declared = declared
        if self.kind == "tensor" and not self.ragged:
            self.ragged = declared.ragged or declared.shape not in (None, self.shape)
            if self.ragged:
                self._spread_sizes(holders, capacity)

    def _spread_sizes(self, holders: Ints, capacity: int) -> None:
        self.sizes = np.full((capacity, self.rank or 0), LACKS, np.int32)
        if self.shape is not None:
            self.sizes[holders] = self.shape

    def check(self, write: "FieldWrite | Declared") -> None:
        """Raises KindConflict or DtypeConflict where `write` contradicts what the field is."""
        if self.kind is None:
            return
        if write.kind != self.kind:
            raise KindConflict(
                f"field {self.name!r} is of kind {self.kind}, not {write.kind}: use another field name",
                fields=[self.name],
            )
        if write.dtype != self.dtype:
            raise DtypeConflict(f"field {self.name!r} has dtype {self.dtype}, not {write.dtype}", fields=[self.name])
        rank = write.rank if isinstance(write, FieldWrite) else rank_of(write.shape)
        if None not in (self.rank, rank) and self.rank != rank:
            raise DtypeConflict(f"field {self.name!r} has rank {self.rank}, not {rank}", fields=[self.name])

    def same(self, write: FieldWrite, rows: Ints) -> npt.NDArray[np.bool_]:
        """bool [rows]: where `write` would change neither shape nor backend meta of rows that have the field."""
        out = np.full(len(rows), write.ragged <= self.ragged)
        if self.kind == "tensor":
            out &= self._same_sizes(write, rows)
        stored = self.backend.at(rows, None)
        if isinstance(stored, bytes) and isinstance(write.backend, bytes):
            return out & (stored == write.backend)
        ours = [stored] * len(rows) if isinstance(stored, bytes) else stored
        theirs = [write.backend] * len(rows) if isinstance(write.backend, bytes) else write.backend
        return out & np.fromiter((a == b for a, b in zip(ours, theirs, strict=True)), np.bool_, len(rows))

    def _same_sizes(self, write: FieldWrite, rows: Ints) -> npt.NDArray[np.bool_]:
        ours = self.sizes[rows] if self.sizes is not None else np.array(self.shape or (), np.int32)
        theirs = sizes_of(write) if write.sizes is not None else np.array(write.shape, np.int32)
        return np.broadcast_to((ours == theirs).all(-1), (len(rows),))

    def write(self, rows: Ints, write: FieldWrite, others: Holders, capacity: int) -> None:
        """Apply `write` to `rows`; `others` are the rows that had the field before, those written again left out."""
        self.kind, self.dtype = write.kind, write.dtype
        if write.kind == "tensor":
            self._write_sizes(rows, write, others, capacity)
        self.backend.put(rows, write.backend, others, capacity)

    def _write_sizes(self, rows: Ints, write: FieldWrite, others: Holders, capacity: int) -> None:
        self.rank = write.rank
        if not self._becomes_ragged(write, others):
            self.shape = write.shape
            return
        if self.sizes is None:
            self._spread_sizes(others(), capacity)
        self.ragged = True
        assert self.sizes is not None  # noqa: S101  (for the type checker: it was spread)
        self.sizes[rows] = np.array(write.shape, np.int32) if write.sizes is None else sizes_of(write)

    def _becomes_ragged(self, write: FieldWrite, others: Holders) -> bool:
        if self.ragged or write.ragged:
            return True
        if self.shape is None or self.shape == write.shape:
            return False
        return bool(self.declared and self.declared.shape is not None) or len(others()) > 0

    def resize(self, capacity: int) -> None:
        """Room for this many rows."""
        if self.sizes is not None:
            self.sizes = grown(self.sizes, capacity, LACKS)
        self.backend.resize(capacity)

    def keep(self, rows: Ints, capacity: int) -> None:
        """Only these rows remain."""
        if self.sizes is not None:
            self.sizes = grown(self.sizes[rows], capacity, LACKS)
        self.backend.keep(rows, capacity)


def sizes_of(write: FieldWrite) -> Sizes:
    """int32 [rows, rank] of a write that carries one shape per row."""
    assert write.sizes is not None  # noqa: S101  (for the type checker: callers looked)
    return np.frombuffer(write.sizes, "<i4").reshape(-1, write.rank or 1)


def rank_of(shape: tuple[int, ...] | None) -> int | None:
    """None where the shape is not known."""
    return None if shape is None else len(shape)
