"""Samples x fields of a partition: which cells are produced, their shapes, their backend meta."""

from collections.abc import Iterable, Sequence

import numpy as np

from core.arrays import Ints, grown
from core.events import Declared, Produced

from .asked_fields import AskedFields
from .fields import Field
from .first_write import first_placement, new_fields
from .other_rows import OtherRows, nobody
from .placements import Placement, place
from .readiness import WORD, NewWords, bit_column, count_bits, mask_of
from .revoked import RevokedCells
from .shapes import Sizes, SizeTable
from .signatures import FieldSignature, Memo, from_bytes

MAX_ASKED = 16
_NO_SIZES: Sizes = np.zeros((1, 0), np.int32)


class Grid:
    """`produced` counts the ready cells per field bit, `hidden` those of clearing rows, which keep their cells.

    A row *has* a field once the field was written, also while the cell is `revoked`; only `status` says that it is
    ready. Every change of a field's schema or constant drops all placements, and what
    was worked out for readers.
    """

    __slots__ = (
        "_asked", "_free_bits", "_placements", "capacity", "fields", "hidden", "produced", "revoked", "sizes", "status",
    )  # fmt: skip

    def __init__(self, new_words: NewWords, capacity: int) -> None:
        self.capacity = capacity
        self.fields: dict[str, Field] = {}
        self.status = new_words(capacity)
        self.sizes = SizeTable(capacity)
        self.produced: Ints = np.zeros(WORD, np.int64)
        self.hidden: Ints = np.zeros(WORD, np.int64)
        self.revoked = RevokedCells()
        self._free_bits: list[int] = []
        self._placements: Memo[bytes, Placement] = Memo()
        self._asked: dict[tuple[str, ...] | None, AskedFields] = {}

    # Queries

    def asked(self, names: tuple[str, ...] | None) -> AskedFields:
        """These fields as readers ask for them; None: all."""
        found = self._asked.get(names)
        if found is None:
            found = AskedFields(self.fields if names is None else names, self.fields, self.status.width)
            if not found.missing:  # else the caller's own text would be kept
                if len(self._asked) >= MAX_ASKED:
                    self._asked.clear()
                self._asked[None if names is None else found.names] = found
        return found

    def mask(self, fields: Iterable[Field]) -> Ints:
        """The bit words of these fields: int64 [words]."""
        return mask_of((field.bit for field in fields), self.status.width)

    def written(self, rows: Ints) -> Ints:
        """Words of the fields that these rows have, ready or revoked: int64 [rows, words]."""
        return self.revoked.joined(rows, self.status.gather(rows))

    def held(self, field: Field) -> int:
        """How many rows have the field."""
        return int(self.produced[field.bit] + self.revoked.count[field.bit])

    def holders(self, field: Field) -> Ints:
        """Rows that have the field."""
        if not self.held(field):
            return np.empty(0, np.int64)
        return np.flatnonzero(bit_column(self.written(np.arange(self.capacity)), field.bit))

    def produced_live(self, field: Field) -> int:
        """How many live rows have the field."""
        return int(self.produced[field.bit] - self.hidden[field.bit])

    def cells_of(self, field: Field, rows: Ints) -> list[bytes]:
        """Backend meta of one field: one JSON value per row."""
        cells = field.backend.at(rows, bit_column(self.written(rows), field.bit))
        return [cells] * len(rows) if isinstance(cells, bytes) else cells

    def placement(self, signature: bytes) -> Placement | None:
        """The placement of a signature; None while one of its fields is new. Raises KindConflict, DtypeConflict."""
        found = self._placements.get(signature)
        if found is None:
            signatures = from_bytes(signature)
            self.check(signatures)
            if all(one.name in self.fields and self.fields[one.name].slot is not None for one in signatures):
                found = self._remember(signature, signatures)
        return found

    def check(self, signatures: Sequence[FieldSignature]) -> None:
        """Raises KindConflict, DtypeConflict."""
        for one in signatures:
            if one.name in self.fields:
                self.fields[one.name].check(one)

    def _remember(self, signature: bytes, signatures: Sequence[FieldSignature]) -> Placement:
        found = place(signatures, [self.fields[one.name] for one in signatures], self.status.width)
        return self._placements.put(signature, found)

    def _forget_worked_out(self) -> None:
        self._placements.clear()
        self._asked.clear()

    # Changes

    def declare(self, declared: Declared) -> None:
        """Declare a field of the partition's settings; an existing field adopts the declaration."""
        field = self.fields.get(declared.name)
        if field is None:
            self._add(declared.name, declared)
        else:
            field.adopt(declared)
        self._forget_worked_out()

    def produce(self, rows: Ints, event: Produced) -> int:
        """Make the event's fields ready for `rows`. Returns their bits, in one int."""
        if not self.fields and not self._free_bits:
            return self._produce_first(rows, event)
        found = self._placements.get(event.signature) or self._place(event.signature)
        before = self.status.gather(rows)
        after = before | found.mask
        had = self.revoked.joined(rows, before)
        sizes = np.frombuffer(event.sizes, "<i4").reshape(-1, found.width) if found.width else _NO_SIZES
        if not found.keeps_shapes(sizes):
            self._reshape(found, rows, sizes, had)
        self.sizes.put(rows, found.slots, sizes)
        if event.backend != found.consts:
            self._put_cells(found, rows, event.backend, had)
        self.status.write(rows, after)
        self.revoked.take(rows, found.mask)
        self._count(found, before, after)
        return found.bit_set

    def _produce_first(self, rows: Ints, event: Produced) -> int:
        """As `produce` where there never was a field."""
        placement = first_placement(event)
        self.fields.update(new_fields(placement, event.backend))
        self._reserve_bits(len(self.fields))
        for field, cells in zip(self.fields.values(), event.backend, strict=True):
            if not isinstance(cells, bytes):
                field.backend.put(rows, cells, nobody, self.capacity)
        self.sizes.reserve(placement.width)
        if placement.width:
            self.sizes.put(rows, placement.slots, np.frombuffer(event.sizes, "<i4").reshape(-1, placement.width))
        self.status.write(rows, self.status.gather(rows) | placement.mask)
        self.produced[: len(self.fields)] = len(rows)
        self._asked.clear()
        return placement.bit_set

    def _place(self, signature: bytes) -> Placement:
        signatures, known = from_bytes(signature), len(self.fields)
        for one in signatures:
            field = self.fields.get(one.name) or self._add(one.name, None)
            if field.slot is None:
                field.become(one, self.sizes.reserve(one.rank or 0))
        if len(self.fields) > known:
            self._forget_worked_out()
        self._asked.clear()
        return self._remember(signature, signatures)

    def _add(self, name: str, declared: Declared | None) -> Field:
        bit = self._free_bits.pop() if self._free_bits else len(self.fields)
        self.fields[name] = field = Field(name, bit, declared)
        self._reserve_bits(bit + 1)
        return field

    def _reserve_bits(self, count: int) -> None:
        if count > len(self.produced):
            self.status.reserve(self.capacity, count)
            self.revoked.reserve(self.capacity, count)
            self.produced = grown(self.produced, self.status.width * WORD, 0)
            self.hidden = grown(self.hidden, self.status.width * WORD, 0)

    def _reshape(self, found: Placement, rows: Ints, sizes: Sizes, had: Ints) -> None:
        for field in found.turning:
            field.become_ragged()
        for one in found.fixed:
            shape = tuple(sizes[0, one.first : one.last].tolist())
            if shape != one.field.shape:
                one.field.take_shape(shape, len(OtherRows(self, one.field, rows, had)()) > 0)
        self._forget_worked_out()

    def _put_cells(self, found: Placement, rows: Ints, cells: Sequence[bytes | list[bytes]], had: Ints) -> None:
        is_new = not (self.produced[found.bits].any() or self.revoked.count[found.bits].any())
        is_changed = False
        for field, value, const in zip(found.fields, cells, found.consts, strict=True):
            if const is None or value != const:
                if is_new and const is not None and isinstance(value, bytes):
                    field.backend.const = value
                else:
                    field.backend.put(rows, value, OtherRows(self, field, rows, had), self.capacity)
                is_changed |= const != field.backend.constant
        if is_changed:
            self._forget_worked_out()

    def _count(self, found: Placement, before: Ints, after: Ints) -> None:
        if np.count_nonzero(before & found.mask):
            fresh = count_bits(after & ~before)
            self.produced[: len(fresh)] += fresh
        else:
            self.produced[found.bits] += len(before)

    def patch(self, rows: Ints, cells: dict[str, bytes | list[bytes]]) -> None:
        """Replace the backend meta of rows; makes nothing ready."""
        for name, values in cells.items():
            column = self.fields[name].backend
            column.spread(self.holders(self.fields[name]), self.capacity)
            column.put(rows, values, lambda: rows, self.capacity)
        self._forget_worked_out()

    def hide(self, rows: Ints, step: int = 1) -> None:
        """Take the cells of these rows, which are clearing, out of the live counts (`step` -1: back into them)."""
        cells = count_bits(self.status.gather(rows))
        self.hidden[: len(cells)] += step * cells

    def revoke(self, rows: Ints, fields: Iterable[Field], revision: int) -> None:
        """The cells of these fields are not ready any more; the rows still have them."""
        before = self.status.gather(rows)
        cells = before & self.mask(fields)
        self.revoked.begin(self.status)
        self.revoked.add(rows, cells, revision)
        self.status.write(rows, before & ~cells)
        self.produced -= count_bits(cells)

    def clear(self, rows: Ints) -> Ints:
        """Remove the cells of these rows. Returns how many, per field bit."""
        words = self.status.gather(rows)
        gone = count_bits(words)
        self.produced[: len(gone)] -= gone
        self.status.write(rows, np.zeros_like(words))
        gone += self.revoked.take(rows, np.full_like(words, -1))
        for field in self.fields.values():
            field.backend.clear(rows)
        return gone

    def forget(self, gone: Ints) -> list[Field]:
        """Handle fields that lost their last cell: reset declared ones; remove and return the others."""
        last = [field for field in self.fields.values() if gone[field.bit] and not self.held(field)]
        for field in last:
            if field.slot is not None and field.rank:
                self.sizes.give_back(field.slot, field.rank)
            if field.declared is not None:
                field.declare(field.declared)
                field.backend.forget_const()
            else:
                del self.fields[field.name]
                self._free_bits.append(field.bit)
        if last:
            self._forget_worked_out()
        return [field for field in last if field.declared is None]

    # Capacity

    def resize(self, capacity: int) -> None:
        """Room for this many rows."""
        self.capacity = capacity
        self.status.reserve(capacity, 0)
        self.revoked.reserve(capacity, 0)
        self.sizes.resize(capacity)
        for field in self.fields.values():
            field.backend.resize(capacity)

    def compact(self, rows: Ints, capacity: int) -> None:
        """Only these rows remain."""
        self.capacity = capacity
        self.status.compact(rows, capacity)
        self.revoked.compact(rows, capacity)
        self.sizes.compact(rows, capacity)
        for field in self.fields.values():
            field.backend.compact(rows, capacity)
