"""Calls that read rows and change nothing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import msgspec

from ..algebra import keep_fields
from ..arguments import flag, maybe, real, text, whole
from ..batch import BatchMeta
from ..calls import Call, conditions_text, encode, group_list, indexes, names, patience, query, route
from ..columns import INTS, VALUES, Column, joined
from ..values import BackendMeta, KeyChanges, KeyLine, ProductionStatus
from ..wire import replies, requests
from ..wire.requests import Include
from .base import Base, batch_of, decoded_raw, ints, pages, readable

_rows = msgspec.json.Decoder(list[list[int]])
_object = msgspec.json.Decoder(dict[str, Any])


class ReadingCalls(Base):
    """A selector is at most one of `global_indexes`, `keys`, `group_ids` and `key_prefix`; without one: all rows.

    All rows, those of groups and those whose key begins with a prefix come in index order.
    """

    async def read(
        self,
        partition_id: str,
        *,
        fields: Iterable[str] | None = None,
        global_indexes: Iterable[int] | None = None,
        keys: Iterable[str] | None = None,
        group_ids: Iterable[str | int] | None = None,
        key_prefix: str | None = None,
        include: Iterable[Include] | None = None,
        strict: bool = False,
        compact: bool = False,
        expand: bool = False,
    ) -> BatchMeta:
        """Batch meta of the selected rows, in the order asked; consumes nothing. Pages are joined to one batch.

        `fields`: None for all known now. `include`: None for field_schema, custom_meta, backend_meta, and keys if
        any row has one. `compact`: lengths instead of shapes for fields of rank 1. `expand`: no constant columns.
        Keys that no row has are in `missing_keys`, unknown fields in `missing_fields`; an index not held has status 0.
        `strict` raises KeyNotFound, SampleNotFound, SampleCleared or FieldNotFound instead. Raises PartitionNotFound,
        PartitionCleared. More than `limits.max_rows` rows come in pages, which are no snapshot: `revision` is the
        first page's, and fields that turn up later are left out.
        """
        body = requests.Read(
            fields=names(fields, "fields"),
            global_indexes=indexes(global_indexes, "global_indexes"),
            keys=names(keys, "keys"),
            group_ids=group_list(group_ids),
            key_prefix=maybe(text, key_prefix, "key_prefix"),
            include=cast("list[Include] | None", names(include, "include")),
            strict=flag(strict, "strict") or None,
            compact=flag(compact, "compact") or None,
            expand=flag(expand, "expand") or None,
            share_columns=True,
        )
        path = route("partitions", partition_id, "batch-meta")
        pinned: list[str] | None = body.fields

        async def fetch(cursor: str | None) -> replies.BatchMeta:
            nonlocal pinned
            asked = msgspec.structs.replace(body, fields=pinned, cursor=cursor)
            page = await self._answer(Call("POST", path, body=encode(asked)), replies.BatchMeta)
            pinned = page.fields  # every page must mean the same by "ready"
            return page

        return _joined_pages(await pages(fetch, lambda page: page.next_cursor))

    async def read_backend_meta(
        self,
        partition_id: str,
        *,
        fields: Iterable[str] | None = None,
        global_indexes: Iterable[int] | None = None,
        keys: Iterable[str] | None = None,
        group_ids: Iterable[str | int] | None = None,
        key_prefix: str | None = None,
    ) -> BackendMeta:
        """Where the bytes of the selected cells lie, as the storage backend recorded it. Pages are joined.

        Raises PartitionNotFound, PartitionCleared.
        """
        body = requests.ReadBackendMeta(
            fields=names(fields, "fields"),
            global_indexes=indexes(global_indexes, "global_indexes"),
            keys=names(keys, "keys"),
            group_ids=group_list(group_ids),
            key_prefix=maybe(text, key_prefix, "key_prefix"),
        )
        path = route("partitions", partition_id, "backend-meta")
        pinned: list[str] | None = body.fields

        async def fetch(cursor: str | None) -> replies.BackendMeta:
            nonlocal pinned
            asked = msgspec.structs.replace(body, fields=pinned, cursor=cursor)
            page = await self._answer(Call("POST", path, body=encode(asked)), replies.BackendMeta)
            pinned = list(page.backend_meta)
            return page

        return _joined_backend_meta(await pages(fetch, lambda page: page.next_cursor))

    async def production(self, partition_id: str, fields: Iterable[str]) -> ProductionStatus:
        """Which cells are produced, for all rows. Pages are joined.

        Raises FieldNotFound for an unknown field, PartitionNotFound, PartitionCleared.
        """
        asked = _joined_names(names(fields, "fields"))
        path = route("partitions", partition_id, "production")

        async def fetch(cursor: str | None) -> replies.ProductionStatus:
            text = query(requests.ProductionQuery(fields=asked, cursor=cursor))
            return await self._answer(Call("GET", path, query=text), replies.ProductionStatus)

        found = await pages(fetch, lambda page: page.next_cursor)
        return ProductionStatus(
            partition_id=partition_id,
            revision=found[0].revision,
            global_indexes=[index for page in found for index in ints(page.global_indexes)],
            fields=found[0].fields,
            production_status=[row for page in found for row in decoded_raw(page.production_status, _rows)],
        )

    async def lookup_keys(self, partition_id: str, global_indexes: Iterable[int]) -> list[str | None]:
        """The key of each index, in the order asked; None where a row has none or is not held.

        Raises PartitionNotFound, PartitionCleared.
        """
        body = requests.LookupKeys(global_indexes=indexes(global_indexes, "global_indexes"))
        call = Call("POST", route("partitions", partition_id, "keys", "lookup"), body=encode(body))
        return (await self._answer(call, replies.FoundKeys)).keys

    async def keys(
        self,
        partition_id: str,
        prefix: str | None = None,
        *,
        where: Iterable[requests.Condition | Mapping[str, Any]] | None = None,
    ) -> list[KeyLine]:
        """All keyed rows (whose key begins with `prefix`) with their custom meta. Pages are joined.

        `where`: only those whose custom meta fulfils every condition, as in `claim`.

        Raises PartitionNotFound, PartitionCleared.
        """
        path = route("partitions", partition_id, "keys")
        listed = requests.ListKeys(prefix=maybe(text, prefix, "prefix"), where=conditions_text(where))

        async def fetch(cursor: str | None) -> replies.KeyList:
            asked = query(msgspec.structs.replace(listed, cursor=cursor))
            return await self._answer(Call("GET", path, query=asked), replies.KeyList)

        found = await pages(fetch, lambda page: page.next_cursor)
        return [_key_line(line) for page in found for line in page.keys]

    async def key_changes(
        self,
        partition_id: str,
        since_revision: int,
        *,
        prefix: str | None = None,
        where: Iterable[requests.Condition | Mapping[str, Any]] | None = None,
        wait_s: float = 0.0,
    ) -> KeyChanges:
        """What changed after a revision (0: all there is), among the keys that begin with `prefix`. Pages are joined.

        `where`: only rows whose custom meta fulfils every condition; one that no longer does is in `removed`.

        Waits up to `wait_s` (0 to 60 seconds) for a change. Go on from the `revision` of the answer. Raises Compacted
        when what left since then is not known any more: forget what you know, and begin anew with 0. Raises
        PartitionNotFound, PartitionCleared, also while it waits.
        """
        path = route("partitions", partition_id, "keys")
        asked = requests.ListKeys(
            prefix=maybe(text, prefix, "prefix"),
            since_revision=whole(since_revision, "since_revision"),
            where=conditions_text(where),
        )
        waited = real(wait_s, "wait_s")

        async def fetch(cursor: str | None) -> replies.KeyList:
            page = msgspec.structs.replace(asked, cursor=cursor, wait_s=waited or None if cursor is None else None)
            call = Call("GET", path, query=query(page), wait_s=patience(page.wait_s or 0.0))
            return await self._answer(call, replies.KeyList)

        return _joined_changes(await pages(fetch, lambda page: page.next_cursor))


def _joined_names(fields: list[str]) -> str:
    for place, name in enumerate(fields):
        if "," in name:
            raise ValueError(f"fields[{place}]: {name!r} has a comma, and no field's name has")
    return ",".join(fields)


def _joined_pages(found: Sequence[replies.BatchMeta]) -> BatchMeta:
    batches = [batch_of(page) for page in found]
    if len(batches) == 1:
        return batches[0]
    # A field can be forgotten between two pages, when the last row that had it is cleared.
    last = batches[-1].fields
    return replace(
        BatchMeta.concat([batch if batch.fields == last else keep_fields(batch, last) for batch in batches]),
        missing_keys=_union([batch.missing_keys for batch in batches]),
    )


def _union(parts: Sequence[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    there = [part for part in parts if part is not None]
    return tuple(dict.fromkeys(name for part in there for name in part)) if there else None


def _key_line(line: replies.KeyLine) -> KeyLine:
    return KeyLine(line.key, line.global_index, decoded_raw(line.custom_meta, _object), line.revision)


def _joined_changes(found: Sequence[replies.KeyList]) -> KeyChanges:
    """A key that left on one page and came back on a later one is there, and the other way round."""
    keys: dict[str, KeyLine] = {}
    removed: dict[str, None] = {}
    for page in found:
        for key in page.removed or ():
            keys.pop(key, None)
            removed[key] = None
        for line in page.keys:
            removed.pop(line.key, None)
            keys.pop(line.key, None)  # to the end: that is the order of changes
            keys[line.key] = _key_line(line)
    return KeyChanges(found[-1].partition_id, found[-1].revision, list(keys.values()), list(removed))


def _joined_backend_meta(found: Sequence[replies.BackendMeta]) -> BackendMeta:
    columns = [_backend_columns(page) for page in found]
    missing = _union([tuple(page.missing_fields) for page in found])
    return BackendMeta(
        partition_id=found[0].partition_id,
        revision=found[0].revision,
        global_indexes=joined([rows for rows, _ in columns]),
        backend_meta={name: joined([cells[name] for _, cells in columns]) for name in columns[-1][1]},
        missing_keys=_union([tuple(page.missing_keys) for page in found]) or (),
        missing_fields=missing or (),
    )


def _backend_columns(page: replies.BackendMeta) -> tuple[Column[int], dict[str, Column[Any]]]:
    rows = INTS.column(page.global_indexes, len(ints(page.global_indexes)))
    with readable("backend meta"):
        return rows, {name: VALUES.column(raw, len(rows)) for name, raw in page.backend_meta.items()}
