"""How batches are cut and joined: pure functions over `BatchMeta`, whose methods document them.

The result is true of its rows, or the operation refuses; nothing is guessed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from .columns import Array, Column, Const, joined
from .lazy_columns import Places
from .lazy_fields import Columns
from .schema import FieldSchema, joined_schema

if TYPE_CHECKING:
    from .batch import BatchMeta

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class _Rowwise(Protocol[T_co]):
    def at(self, rows: Places) -> T_co: ...


def take(batch: "BatchMeta", rows: Places) -> "BatchMeta":
    """These rows, of every column."""
    return replace(
        batch,
        global_indexes=batch.global_indexes.at(rows),
        production_status=batch.production_status.at(rows),
        keys=None if batch.keys is None else batch.keys.at(rows),
        group_ids=None if batch.group_ids is None else batch.group_ids.at(rows),
        field_schema=_taken(batch.field_schema, rows),
        custom_meta=None if batch.custom_meta is None else batch.custom_meta.at(rows),
        backend_meta=_taken(batch.backend_meta, rows),
        field_status=_taken(batch.field_status, rows),
        missing_keys=None,
        created=None,
    )


def keep_fields(batch: "BatchMeta", names: Sequence[str]) -> "BatchMeta":
    """Only the columns of these fields; the production status stays what it is."""
    return replace(
        batch,
        fields=tuple(names),
        field_schema=_kept(batch.field_schema, names),
        backend_meta=_kept(batch.backend_meta, names),
        field_status=_kept(batch.field_status, names),
        missing_keys=None,
        created=None,
    )


def select_fields(batch: "BatchMeta", names: Sequence[str]) -> "BatchMeta":
    """The batch as if only these fields had been asked for."""
    asked = list(dict.fromkeys(names))
    unknown = [name for name in asked if name not in batch.fields and name not in batch.missing_fields]
    if unknown:
        raise KeyError(f"the batch has no field {', '.join(map(repr, unknown))}")
    known = [name for name in asked if name in batch.fields]
    missing = tuple(name for name in asked if name in batch.missing_fields)
    return replace(keep_fields(batch, known), missing_fields=missing, production_status=_status(batch, known))


def join(batches: "Sequence[BatchMeta]") -> "BatchMeta":
    """The rows of all batches, one after the other."""
    if not batches:
        raise ValueError("there is no batch to concatenate")
    first, sizes = batches[0], [batch.size for batch in batches]
    asked = set(first.fields)
    for batch in batches:
        if batch.partition_id != first.partition_id or set(batch.fields) != asked:
            raise ValueError("batches of different partitions or fields cannot be concatenated")
    return replace(
        first,
        revision=min(batch.revision for batch in batches),
        global_indexes=joined([batch.global_indexes for batch in batches]),
        missing_fields=tuple(dict.fromkeys(name for batch in batches for name in batch.missing_fields)),
        production_status=joined([batch.production_status for batch in batches]),
        keys=_joined_keys(batches),
        group_ids=_joined("group_ids", [batch.group_ids for batch in batches]),
        field_schema=_joined_schemas([batch.field_schema for batch in batches], sizes),
        custom_meta=_joined("custom_meta", [batch.custom_meta for batch in batches]),
        backend_meta=_joined_each("backend_meta", [batch.backend_meta for batch in batches]),
        field_status=_joined_each("field_status", [batch.field_status for batch in batches]),
        missing_keys=None,
        created=None,
    )


def _taken(columns: "Mapping[str, _Rowwise[T]] | None", rows: Places) -> "Columns[T] | None":
    return None if columns is None else Columns(columns, lambda column: column.at(rows))


def _kept(columns: Mapping[str, T] | None, names: Sequence[str]) -> Mapping[str, T] | None:
    return None if columns is None else Columns({name: name for name in names if name in columns}, columns.__getitem__)


def _status(batch: "BatchMeta", known: Sequence[str]) -> Column[int]:
    if set(known) == set(batch.fields):
        return batch.production_status
    if not known:
        return Array([0] * batch.size)
    if batch.field_status is not None:
        return Array(map(min, zip(*(batch.field_status[name] for name in known), strict=True)))
    if 0 in batch.production_status:
        raise ValueError("some rows are not ready, and which fields they lack is not known: include field_status")
    return batch.production_status


def _all_or_none(member: str, parts: Sequence[T | None]) -> list[T] | None:
    there = [part for part in parts if part is not None]
    if len(there) not in (0, len(parts)):
        raise ValueError(f"some batches have {member} and some do not")
    return there or None


def _joined(member: str, columns: Sequence[Column[T] | None]) -> Column[T] | None:
    parts = _all_or_none(member, columns)
    return None if parts is None else joined(parts)


def _joined_keys(batches: "Sequence[BatchMeta]") -> Column[str | None] | None:
    # By default a reply has keys only if one of its rows has: a batch without stands for rows that have none.
    if all(batch.keys is None for batch in batches):
        return None
    return joined([Const(None, batch.size) if batch.keys is None else batch.keys for batch in batches])


def _by_field(member: str, parts: Sequence[Mapping[str, T] | None]) -> Columns[list[T]] | None:
    there = _all_or_none(member, parts)
    if there is None:
        return None
    if any(part.keys() != there[0].keys() for part in there):
        raise ValueError(f"{member} is there for different fields")
    return Columns({name: name for name in there[0]}, lambda name: [part[name] for part in there])


def _joined_each(member: str, parts: Sequence[Mapping[str, Column[T]] | None]) -> Mapping[str, Column[T]] | None:
    fields = _by_field(member, parts)
    return None if fields is None else Columns(fields, joined)


def _joined_schemas(
    parts: Sequence[Mapping[str, FieldSchema] | None], sizes: Sequence[int]
) -> dict[str, FieldSchema] | None:
    fields = _by_field("field_schema", parts)
    return None if fields is None else {name: joined_schema(each, sizes) for name, each in fields.items()}
