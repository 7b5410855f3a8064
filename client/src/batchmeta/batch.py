"""Batch meta (contract#batch-meta): the description of a list of rows, as an immutable value with columns.

What it is and how it goes to and from the wire; how it is cut and joined is in algebra.py. It says nothing of HTTP.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from . import algebra, arguments
from .arguments import text, texts, whole
from .columns import GROUPS, INTS, KEYS, METAS, VALUES, Cells, Column, full_cells
from .json_values import encoded, to_json
from .lazy_fields import Received
from .schema import FieldSchema, full_schema
from .wire import replies

T = TypeVar("T")
U = TypeVar("U")
_decoder = msgspec.json.Decoder(replies.BatchMeta)
_encoder = msgspec.json.Encoder(enc_hook=to_json)


@dataclass(frozen=True, slots=True, repr=False)
class BatchMeta:
    """`size` rows of one partition; every column has one value per row, in row order.

    `production_status[i]` is 1 when every one of `fields` is produced for row i; a row that the partition does not
    hold has 0 there and None as key and metas. A member that was not asked for (`include`) is None.
    Schemas, columns and cells of a batch from the service are made of its JSON when somebody looks at them.
    `missing_keys` and `created` belong to the call that made the batch: batches derived from it have none.
    """

    partition_id: str
    revision: int
    global_indexes: Column[int]
    fields: tuple[str, ...]
    missing_fields: tuple[str, ...]
    production_status: Column[int]
    keys: Column[str | None] | None = None
    group_ids: Column[str | int | None] | None = None
    field_schema: Mapping[str, FieldSchema] | None = None
    custom_meta: Column[dict[str, Any] | None] | None = None
    backend_meta: Mapping[str, Column[Any]] | None = None
    field_status: Mapping[str, Column[int]] | None = None
    missing_keys: tuple[str, ...] | None = None
    created: int | None = None

    def __len__(self) -> int:
        return len(self.global_indexes)

    def __repr__(self) -> str:
        ready = "ready" if self.is_ready else "not ready"
        return f"<BatchMeta of {self.partition_id!r}, {self.size} rows, {len(self.fields)} fields, {ready}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (BatchMeta.from_json, (self.to_json(),))  # as bytes, and still undecoded in the other process

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.global_indexes)

    @property
    def is_ready(self) -> bool:
        """At least one row, and every one of `fields` is produced for all of them."""
        return self.size > 0 and 0 not in self.production_status

    def select_fields(self, names: Iterable[str]) -> "BatchMeta":
        """The batch as if only these fields had been asked for, in this order, once each.

        A name of `missing_fields` stays missing; any other unknown name is a KeyError. The status is computed anew
        from `field_status` where the batch has it. Without it a row that was ready stays ready (fewer fields are
        asked of it); what a row that was *not* ready lacks cannot be told, and then this is a ValueError.
        """
        return algebra.select_fields(self, [*map(str.__str__, texts(names, "names"))])

    def select_samples(self, positions: Iterable[int] | Iterable[bool]) -> "BatchMeta":
        """The rows at these positions (0 to size - 1), in this order; repetitions are allowed. IndexError outside.

        Or those where a mask, one bool per row, is True; ValueError for a mask of another length.
        """
        rows = arguments.positions(positions, self.size)
        if rows and not 0 <= min(rows) <= max(rows) < self.size:
            raise IndexError(f"positions must be within 0 and {self.size - 1}")
        return algebra.take(self, rows)

    def reorder(self, positions: Iterable[int]) -> "BatchMeta":
        """All rows in another order: row i of the result is row `positions[i]`. ValueError unless each comes once."""
        rows = arguments.order(positions)
        if sorted(rows) != list(range(self.size)):
            raise ValueError(f"positions must be an order of the {self.size} rows, each once")
        return algebra.take(self, rows)

    def chunk(self, n: int) -> "list[BatchMeta]":
        """`n` batches, one after the other, of sizes as equal as can be, larger ones first; empty ones if n > size."""
        n = whole(n, "n")
        if n < 1:
            raise ValueError("n must be at least 1")
        share, more = divmod(self.size, n)
        ends = [(i + 1) * share + min(i + 1, more) for i in range(n)]
        return [algebra.take(self, slice(begin, end)) for begin, end in zip([0, *ends], ends, strict=False)]

    @staticmethod
    def concat(batches: "Iterable[BatchMeta]") -> "BatchMeta":
        """The rows of all batches, one after the other, with the fields in the order of the first.

        `revision` is the lowest of theirs: the result tells of nothing later. ValueError if there is no batch, or if
        they differ in partition, fields, included members or a field's dtype. Absent `keys` are filled up with None.
        """
        parts = arguments.items(batches, "batches")
        for place, part in enumerate(parts):
            if not isinstance(part, BatchMeta):
                arguments.refuse("a BatchMeta", part, f"batches[{place}]")
        return algebra.join(parts)

    def to_dict(self) -> dict[str, Any]:
        """The wire form as plain lists, dicts, strings and numbers; `from_dict` gives the same batch again."""
        plain: dict[str, Any] = msgspec.json.decode(self.to_json())
        return plain

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> "BatchMeta":
        """A batch from its wire form; ValueError if it is none, TypeError for what is not JSON.

        A `next_cursor` is left behind.
        """
        return BatchMeta.from_json(encoded(plain, "plain"))

    def to_json(self) -> bytes:
        """The wire form as JSON in UTF-8. Columns that were never changed are copied as they came."""
        return _encoder.encode(self.to_wire())

    @staticmethod
    def from_json(body: bytes) -> "BatchMeta":
        """A batch from its JSON; ValueError if it is none."""
        return BatchMeta.from_wire(_decoder.decode(body))

    @classmethod
    def from_wire(cls, reply: replies.BatchMeta) -> "BatchMeta":
        """The value of a reply body."""
        size = reply.size
        return cls(
            partition_id=reply.partition_id,
            revision=reply.revision,
            global_indexes=INTS.column(reply.global_indexes, size),
            fields=tuple(reply.fields),
            missing_fields=tuple(reply.missing_fields),
            production_status=INTS.column(reply.production_status, size),
            keys=_column(KEYS, reply.keys, size),
            group_ids=_column(GROUPS, reply.group_ids, size),
            field_schema=_each(
                lambda part, others: FieldSchema.from_wire(part, size, others), reply.field_schema, full_schema
            ),
            custom_meta=_column(METAS, reply.custom_meta, size),
            backend_meta=_each(partial(VALUES.of, size), reply.backend_meta, full_cells),
            field_status=_each(partial(INTS.of, size), reply.field_status, full_cells),
            missing_keys=None if reply.missing_keys is UNSET else tuple(reply.missing_keys),
            created=None if reply.created is UNSET else reply.created,
        )

    def to_wire(self) -> replies.BatchMeta:
        """The reply body that this is the value of."""
        return replies.BatchMeta(
            partition_id=text(self.partition_id, "partition_id"),
            revision=whole(self.revision, "revision"),
            size=self.size,
            is_ready=self.is_ready,
            global_indexes=self.global_indexes.to_raw(),
            fields=texts(self.fields, "fields"),
            missing_fields=texts(self.missing_fields, "missing_fields"),
            production_status=self.production_status.to_raw(),
            keys=_raw(self.keys, "keys"),
            group_ids=_raw(self.group_ids, "group_ids"),
            field_schema=_unset(FieldSchema.to_wire, self.field_schema),
            custom_meta=_raw(self.custom_meta, "custom_meta"),
            backend_meta=_raws(self.backend_meta, "backend_meta"),
            field_status=_raws(self.field_status, "field_status"),
            missing_keys=UNSET if self.missing_keys is None else list(self.missing_keys),
            created=UNSET if self.created is None else self.created,
        )


def _column(cells: Cells[T], raw: Raw | UnsetType, size: int) -> Column[T] | None:
    return None if raw is UNSET else cells.column(raw, size)


def _each(
    read: Callable[[T, Received[U]], U],
    parts: dict[str, T] | UnsetType,
    full: Callable[[Mapping[str, T], str], T],
) -> Received[U] | None:
    return None if parts is UNSET else Received(parts, read, full)


def _raw(column: Column[Any] | None, where: str) -> Raw | UnsetType:
    return UNSET if column is None else column.to_raw(where)


def _raws(columns: Mapping[str, Column[Any]] | None, where: str) -> dict[str, Raw] | UnsetType:
    if isinstance(columns, Received):
        return columns.to_wire()
    return UNSET if columns is None else {name: part.to_raw(f"{where}.{name}") for name, part in columns.items()}


def _unset(write: Callable[[T], U], parts: Mapping[str, T] | None) -> dict[str, U] | UnsetType:
    if isinstance(parts, Received):
        return parts.to_wire()
    return UNSET if parts is None else {name: write(part) for name, part in parts.items()}
