"""Calls that write rows: insert, produce, patch, delete."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

from msgspec import UNSET

from ..arguments import flag, maybe, real, text, whole
from ..batch import BatchMeta
from ..calls import cell_columns, cells, change, conditions, encode, group_list, indexes, names, route
from ..schema import FieldSchema, wire_schemas
from ..values import PatchedBackendMeta, Produced
from ..wire import replies, requests
from ..wire.requests import Include
from .base import Base, batch_of, ints


class WritingCalls(Base):
    """A column argument is a sequence with one value per named row, or `Const(value)` for all of them.

    A cell is JSON: None, bool, text, finite number, whole number of 64 bits, list, or dict with text as names. Scalars
    and arrays of numpy and torch are taken for what they hold. All else is TypeError or ValueError, which names the
    place, such as `custom_meta[3].reward`: bytes, sets, dates, dataclasses and Structs are not turned into anything.
    """

    async def insert(
        self,
        partition_id: str,
        *,
        count: int | None = None,
        keys: Iterable[str] | None = None,
        group_ids: Sequence[str | int | None] | None = None,
        custom_meta: Sequence[Mapping[str, Any] | None] | None = None,
        custom_meta_mode: Literal["merge", "update"] = "merge",
        ttl_s: float | None = None,
        include: Iterable[Include] | None = None,
        compact: bool = False,
        expand: bool = False,
        idempotency_key: str | None = None,
    ) -> BatchMeta:
        """New rows: `count` of them, or one per key; `created` says how many. A key that exists keeps its index.

        Makes the partition if need be; meta given for a key that exists is merged (RFC 7396), or with
        `custom_meta_mode="update"` updated as a dict is. With `ttl_s`, rows that have no produced field within so many
        seconds disappear; inserting them again, or a patch, renews it. The answer describes the rows, new or found;
        `include`, `compact` and `expand` are as in `read`, e.g. `include=["field_status"]`: which fields each has.
        Raises DuplicateKeys, GroupConflict, PartitionSealed, TooManySamples.
        """
        body = requests.Insert(
            count=maybe(whole, count, "count"),
            keys=names(keys, "keys"),
            group_ids=cells(group_ids, "group_ids"),
            custom_meta=cells(custom_meta, "custom_meta"),
            custom_meta_mode=_mode(custom_meta_mode),
            ttl_s=maybe(real, ttl_s, "ttl_s"),
            include=cast("list[Include] | None", names(include, "include")),
            expand=flag(expand, "expand") or None,
            compact=flag(compact, "compact") or None,
            share_columns=True,
        )
        path = route("partitions", partition_id, "samples")
        call = change("POST", path, idempotency_key, body=encode(body))
        return batch_of(await self._answer(call, replies.BatchMeta))

    async def produce(
        self,
        partition_id: str,
        field_schema: Mapping[str, Mapping[str, Any] | FieldSchema],
        *,
        global_indexes: Iterable[int] | None = None,
        keys: Iterable[str] | None = None,
        create: bool = False,
        backend_meta: Mapping[str, Sequence[Any]] | None = None,
        custom_meta: Sequence[Mapping[str, Any] | None] | None = None,
        custom_meta_mode: Literal["merge", "update"] = "merge",
        group_ids: Sequence[str | int | None] | None = None,
        on_cleared: Literal["refuse", "skip"] = "refuse",
        idempotency_key: str | None = None,
    ) -> Produced:
        """The data of these fields is in the storage backend, for these rows: one atomic step.

        `field_schema`, per field: `{"dtype": "float32", "shape": [1024]}`, ragged `{"dtype": "int64", "lengths":
        [812, 5310]}` or `"shapes"`, no tensor `{"kind": "object"}`, or the FieldSchema of a batch. A dtype is torch's
        name, or a dtype of torch or numpy. `create` makes absent keys. `backend_meta`: per field one JSON value per
        row. `custom_meta_mode`: as in `patch_custom_meta`.
        `on_cleared="skip"`: rows that were cleared are left out and told in `skipped`, instead of SampleCleared. Raises
        DtypeConflict, KindConflict, GroupConflict, SampleNotFound, KeyNotFound, SampleCleared, SampleClearing,
        PartitionNotFound, PartitionCleared.
        """
        skipping = cast('Literal["refuse", "skip"]', text(on_cleared, "on_cleared"))
        body = requests.Produce(
            field_schema=wire_schemas(field_schema, "field_schema"),
            global_indexes=indexes(global_indexes, "global_indexes"),
            keys=names(keys, "keys"),
            create=flag(create, "create") or None,
            backend_meta=cell_columns(backend_meta, "backend_meta"),
            custom_meta=cells(custom_meta, "custom_meta"),
            custom_meta_mode=_mode(custom_meta_mode),
            group_ids=cells(group_ids, "group_ids"),
            on_cleared=None if skipping == "refuse" else skipping,
        )
        call = change("POST", route("partitions", partition_id, "production"), idempotency_key, body=encode(body))
        reply = await self._answer(call, replies.Produced)
        skipped = () if reply.skipped is UNSET else tuple(reply.skipped)
        return Produced(reply.partition_id, reply.revision, ints(reply.global_indexes), reply.created, skipped)

    async def patch_custom_meta(
        self,
        partition_id: str,
        custom_meta: Sequence[Mapping[str, Any] | None],
        *,
        global_indexes: Iterable[int] | None = None,
        keys: Iterable[str] | None = None,
        custom_meta_mode: Literal["merge", "update"] = "merge",
        if_revision: int | None = None,
        ttl_s: float | None = None,
        idempotency_key: str | None = None,
    ) -> replies.PatchedCustomMeta:
        """Apply one patch to each row's custom meta; None in the column leaves a row alone.

        `custom_meta_mode`: "merge" by RFC 7396, where None removes a member and objects are merged; "update" as
        `dict.update` does, where each member replaces the whole old one, and None is a value.
        `if_revision`: only if no named row changed after that revision, else PreconditionFailed with those that did.
        `ttl_s`: rows without a produced field have so many seconds from now to get one, else they disappear.
        Raises SampleNotFound, KeyNotFound, SampleCleared, PartitionNotFound, PartitionCleared.
        """
        body = requests.PatchCustomMeta(
            custom_meta=cells(custom_meta, "custom_meta"),
            custom_meta_mode=_mode(custom_meta_mode),
            global_indexes=indexes(global_indexes, "global_indexes"),
            keys=names(keys, "keys"),
            if_revision=maybe(whole, if_revision, "if_revision"),
            ttl_s=maybe(real, ttl_s, "ttl_s"),
        )
        call = change("PATCH", route("partitions", partition_id, "custom-meta"), idempotency_key, body=encode(body))
        return await self._answer(call, replies.PatchedCustomMeta)

    async def patch_backend_meta(
        self,
        partition_id: str,
        backend_meta: Mapping[str, Sequence[Any]],
        *,
        global_indexes: Iterable[int] | None = None,
        keys: Iterable[str] | None = None,
        idempotency_key: str | None = None,
    ) -> PatchedBackendMeta:
        """The storage backend moved bytes: per field one new JSON value per row. Makes nothing ready.

        Raises FieldNotFound, SampleNotFound, KeyNotFound, SampleCleared, PartitionNotFound, PartitionCleared.
        """
        body = requests.PatchBackendMeta(
            backend_meta=cell_columns(backend_meta, "backend_meta"),
            global_indexes=indexes(global_indexes, "global_indexes"),
            keys=names(keys, "keys"),
        )
        call = change("PATCH", route("partitions", partition_id, "backend-meta"), idempotency_key, body=encode(body))
        reply = await self._answer(call, replies.PatchedBackendMeta)
        return PatchedBackendMeta(reply.partition_id, reply.revision, ints(reply.global_indexes))

    async def revoke(
        self,
        partition_id: str,
        fields: Iterable[str],
        *,
        global_indexes: Iterable[int] | None = None,
        keys: Iterable[str] | None = None,
        group_ids: Iterable[str | int] | None = None,
        key_prefix: str | None = None,
        idempotency_key: str | None = None,
    ) -> replies.Revoked:
        """The storage backend lost the bytes of these fields: the rows are not ready until they are produced again.

        Schema, sizes and metas stay, and so do leases; `revoked` counts the cells that were ready.
        Raises FieldNotFound, PartitionNotFound, PartitionCleared.
        """
        body = requests.Revoke(
            fields=names(fields, "fields"),
            global_indexes=indexes(global_indexes, "global_indexes"),
            keys=names(keys, "keys"),
            group_ids=group_list(group_ids),
            key_prefix=maybe(text, key_prefix, "key_prefix"),
        )
        path = route("partitions", partition_id, "production", "revoke")
        return await self._answer(change("POST", path, idempotency_key, body=encode(body)), replies.Revoked)

    async def delete(
        self,
        partition_id: str,
        *,
        global_indexes: Iterable[int] | None = None,
        keys: Iterable[str] | None = None,
        group_ids: Iterable[str | int] | None = None,
        key_prefix: str | None = None,
        where: Iterable[requests.Condition | Mapping[str, Any]] | None = None,
        idempotency_key: str | None = None,
    ) -> replies.DeletedSamples:
        """Remove rows at once, by one of the selectors; unknown ones are skipped, `cleared` counts the others.

        `where`: only those of them whose custom meta fulfils every condition, as in `claim`; InvalidRequest for none.
        Rows of a pending clear are left to it, and told in `skipped_clearing`. Raises PartitionCleared.
        """
        body = requests.DeleteSamples(
            global_indexes=indexes(global_indexes, "global_indexes"),
            keys=names(keys, "keys"),
            group_ids=group_list(group_ids),
            key_prefix=maybe(text, key_prefix, "key_prefix"),
            where=conditions(where),
        )
        call = change(
            "POST", route("partitions", partition_id, "samples", "delete"), idempotency_key, body=encode(body)
        )
        return await self._answer(call, replies.DeletedSamples)


def _mode(given: Literal["merge", "update"]) -> Literal["merge", "update"] | None:
    """None for what is meant where nothing is said."""
    mode = cast('Literal["merge", "update"]', text(given, "custom_meta_mode"))
    return None if mode == "merge" else mode
