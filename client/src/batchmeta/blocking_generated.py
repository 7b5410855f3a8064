"""`Client`: every call of `AsyncClient`, blocking.

Generated: change aio/ instead, and run scripts/generate_client.py.
"""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal

from .batch import BatchMeta
from .blocking import BlockingBase
from .schema import FieldSchema
from .values import (
    BackendMeta,
    Claim,
    Clear,
    Consumption,
    KeyChanges,
    KeyLine,
    PatchedBackendMeta,
    Produced,
    ProductionStatus,
    Tagged,
)
from .wire import replies, requests
from .wire.requests import Include

__all__ = ["Client"]


class Client(BlockingBase):
    __doc__ = BlockingBase.__doc__

    def put_partition(
        self,
        partition_id: str,
        *,
        expected_samples: int | None = None,
        max_samples: int | None = None,
        max_attempts: int | None = None,
        fields: Mapping[str, Mapping[str, Any]] | None = None,
        idempotency_key: str | None = None,
    ) -> replies.Partition:
        """Make a partition, or give settings to one that has none yet; the same settings twice are no change.

        `fields` declares schemas, e.g. `{"ids": {"dtype": "int64", "ragged": True}}`; `shape` may be left out.
        A deleted one is made anew. Raises PartitionConflict if it has other settings.
        """
        return self._run(
            self._aio.put_partition(
                partition_id,
                expected_samples=expected_samples,
                max_samples=max_samples,
                max_attempts=max_attempts,
                fields=fields,
                idempotency_key=idempotency_key,
            )
        )

    def patch_partition(
        self,
        partition_id: str,
        *,
        expected_samples: int | None = None,
        max_samples: int | None = None,
        max_attempts: int | None = None,
        idempotency_key: str | None = None,
    ) -> replies.Partition:
        """Change settings; None leaves one as it is. Raises PartitionNotFound, PartitionCleared, PartitionSealed."""
        return self._run(
            self._aio.patch_partition(
                partition_id,
                expected_samples=expected_samples,
                max_samples=max_samples,
                max_attempts=max_attempts,
                idempotency_key=idempotency_key,
            )
        )

    def seal(self, partition_id: str, *, idempotency_key: str | None = None) -> replies.Partition:
        """No more samples: waiting claims get the last rows once all are ready, and tasks can be `done`.

        Again: no change. Raises PartitionNotFound, PartitionCleared.
        """
        return self._run(self._aio.seal(partition_id, idempotency_key=idempotency_key))

    def partition(
        self,
        partition_id: str,
        *,
        revision: int | None = None,
        wait_s: float = 0.0,
    ) -> replies.Partition:
        """Settings, counts, fields and tasks of a partition. Raises PartitionNotFound, PartitionCleared.

        With `revision`, waits up to `wait_s` (0 to 60 seconds) until the partition is past it.
        """
        return self._run(self._aio.partition(partition_id, revision=revision, wait_s=wait_s))

    def tagged_partition(self, partition_id: str) -> Tagged:
        """As `partition`, with the ETag that `delete_partition(if_match=…)` takes."""
        return self._run(self._aio.tagged_partition(partition_id))

    def partitions(self, prefix: str | None = None) -> list[replies.PartitionLine]:
        """All partitions (whose name begins with `prefix`) in the order of their creation."""
        return self._run(self._aio.partitions(prefix))

    def delete_partition(
        self, partition_id: str, *, if_match: str | None = None, idempotency_key: str | None = None
    ) -> replies.DeletedPartition:
        """Delete a partition and its samples; `cleared_samples` is 0 where there was none.

        `if_match`: only if its ETag still is this one, else PreconditionFailed.
        """
        return self._run(self._aio.delete_partition(partition_id, if_match=if_match, idempotency_key=idempotency_key))

    def server(self) -> replies.Server:
        """Version, durability, epoch, revision and limits of the service."""
        return self._run(self._aio.server())

    def ready(self) -> bool:
        """Does the service take calls now? One look, no retries; ConnectionLost if nobody answers."""
        return self._run(self._aio.ready())

    def insert(
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
        return self._run(
            self._aio.insert(
                partition_id,
                count=count,
                keys=keys,
                group_ids=group_ids,
                custom_meta=custom_meta,
                custom_meta_mode=custom_meta_mode,
                ttl_s=ttl_s,
                include=include,
                compact=compact,
                expand=expand,
                idempotency_key=idempotency_key,
            )
        )

    def produce(
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
        return self._run(
            self._aio.produce(
                partition_id,
                field_schema,
                global_indexes=global_indexes,
                keys=keys,
                create=create,
                backend_meta=backend_meta,
                custom_meta=custom_meta,
                custom_meta_mode=custom_meta_mode,
                group_ids=group_ids,
                on_cleared=on_cleared,
                idempotency_key=idempotency_key,
            )
        )

    def patch_custom_meta(
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
        return self._run(
            self._aio.patch_custom_meta(
                partition_id,
                custom_meta,
                global_indexes=global_indexes,
                keys=keys,
                custom_meta_mode=custom_meta_mode,
                if_revision=if_revision,
                ttl_s=ttl_s,
                idempotency_key=idempotency_key,
            )
        )

    def patch_backend_meta(
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
        return self._run(
            self._aio.patch_backend_meta(
                partition_id,
                backend_meta,
                global_indexes=global_indexes,
                keys=keys,
                idempotency_key=idempotency_key,
            )
        )

    def revoke(
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
        return self._run(
            self._aio.revoke(
                partition_id,
                fields,
                global_indexes=global_indexes,
                keys=keys,
                group_ids=group_ids,
                key_prefix=key_prefix,
                idempotency_key=idempotency_key,
            )
        )

    def delete(
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
        return self._run(
            self._aio.delete(
                partition_id,
                global_indexes=global_indexes,
                keys=keys,
                group_ids=group_ids,
                key_prefix=key_prefix,
                where=where,
                idempotency_key=idempotency_key,
            )
        )

    def read(
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
        return self._run(
            self._aio.read(
                partition_id,
                fields=fields,
                global_indexes=global_indexes,
                keys=keys,
                group_ids=group_ids,
                key_prefix=key_prefix,
                include=include,
                strict=strict,
                compact=compact,
                expand=expand,
            )
        )

    def read_backend_meta(
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
        return self._run(
            self._aio.read_backend_meta(
                partition_id,
                fields=fields,
                global_indexes=global_indexes,
                keys=keys,
                group_ids=group_ids,
                key_prefix=key_prefix,
            )
        )

    def production(self, partition_id: str, fields: Iterable[str]) -> ProductionStatus:
        """Which cells are produced, for all rows. Pages are joined.

        Raises FieldNotFound for an unknown field, PartitionNotFound, PartitionCleared.
        """
        return self._run(self._aio.production(partition_id, fields))

    def lookup_keys(self, partition_id: str, global_indexes: Iterable[int]) -> list[str | None]:
        """The key of each index, in the order asked; None where a row has none or is not held.

        Raises PartitionNotFound, PartitionCleared.
        """
        return self._run(self._aio.lookup_keys(partition_id, global_indexes))

    def keys(
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
        return self._run(self._aio.keys(partition_id, prefix, where=where))

    def key_changes(
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
        return self._run(self._aio.key_changes(partition_id, since_revision, prefix=prefix, where=where, wait_s=wait_s))

    def claim(
        self,
        partition_id: str,
        task: str,
        fields: Iterable[str],
        batch_size: int,
        *,
        min_batch_size: int | None = None,
        wait_s: float = 0.0,
        sampler: requests.Sampler | Mapping[str, Any] | None = None,
        where: Iterable[requests.Condition | Mapping[str, Any]] | None = None,
        include: Iterable[Include] | None = None,
        compact: bool = False,
        expand: bool = False,
        lease_s: float | None = None,
        worker: str | None = None,
        idempotency_key: str | None = None,
    ) -> Claim:
        """A batch of rows that have all `fields` and that `task` has not consumed; now it has.

        With `lease_s` the rows are held for so many seconds instead: `ack` says what became of them.

        Waits up to `wait_s` (0 to 60 seconds) for `batch_size` rows, on top of the timeout; then `min_batch_size`
        are enough. `sampler`: `{"name": "sequential"}`, or e.g. `{"name": "grpo_group", "n_samples_per_prompt": 8}`
        for whole groups. `where`: only rows whose custom meta fulfils every condition, e.g. `[{"path": "version",
        "op": ">=", "value": 8}]`, of a group every member. The partition need not exist yet. Raises PartitionCleared,
        InvalidRequest, TooManyWaiting.
        Sent again, it gets the batch that was handed out, or its place among those who wait. After ConnectionLost a
        batch may have been handed out to nobody: claim again with the same `idempotency_key`, if it was yours.
        """
        return self._run(
            self._aio.claim(
                partition_id,
                task,
                fields,
                batch_size,
                min_batch_size=min_batch_size,
                wait_s=wait_s,
                sampler=sampler,
                where=where,
                include=include,
                compact=compact,
                expand=expand,
                lease_s=lease_s,
                worker=worker,
                idempotency_key=idempotency_key,
            )
        )

    def explain(
        self,
        partition_id: str,
        task: str,
        fields: Iterable[str],
        batch_size: int,
        *,
        sampler: requests.Sampler | Mapping[str, Any] | None = None,
        where: Iterable[requests.Condition | Mapping[str, Any]] | None = None,
    ) -> replies.Explained:
        """What a claim would find and what is `blocking`; changes nothing. Raises PartitionCleared, InvalidRequest."""
        return self._run(self._aio.explain(partition_id, task, fields, batch_size, sampler=sampler, where=where))

    def consumption(self, partition_id: str, task: str, *, counts_only: bool = False) -> Consumption:
        """How far a task is, row by row unless `counts_only`. Pages are joined; the counts are the last page's.

        Asking registers nothing. Raises PartitionNotFound, PartitionCleared.
        """
        return self._run(self._aio.consumption(partition_id, task, counts_only=counts_only))

    def reset(
        self, partition_id: str, task: str | None = None, *, idempotency_key: str | None = None
    ) -> replies.ResetConsumption:
        """Forget what a task (None: every task) consumed; `reset` counts the rows.

        Raises PartitionNotFound, PartitionCleared.
        """
        return self._run(self._aio.reset(partition_id, task, idempotency_key=idempotency_key))

    def ack(
        self,
        claim_id: str,
        token: str,
        *,
        accept: Iterable[int] | Literal["all"] | None = None,
        release: Iterable[int] | None = None,
        reject: Mapping[int, str] | None = None,
        counts: bool = False,
        idempotency_key: str | None = None,
    ) -> replies.Acked:
        """Settle rows of a claim, by index: accepted ones are consumed, released ones go out again, rejected are dead.

        Nothing named: all are accepted; "all": those still open and not named elsewhere. `reject`: reasons by index.
        A release takes back the attempt that the hand-out was; with `counts` it stays one of the row's `max_attempts`.
        Said again, the answer is the same; "all" again only if this token settled every row.
        Raises ClaimNotFound, LeaseLost (with the rows), InvalidRequest.
        """
        return self._run(
            self._aio.ack(
                claim_id,
                token,
                accept=accept,
                release=release,
                reject=reject,
                counts=counts,
                idempotency_key=idempotency_key,
            )
        )

    def extend(
        self, claim_id: str, token: str, lease_s: float, *, idempotency_key: str | None = None
    ) -> replies.ExtendedLease:
        """The lease ends `lease_s` seconds (at most 86,400) from now. Raises ClaimNotFound, LeaseLost."""
        return self._run(self._aio.extend(claim_id, token, lease_s, idempotency_key=idempotency_key))

    def open_claims(
        self,
        *,
        partition_id: str | None = None,
        task: str | None = None,
        worker: str | None = None,
        prefix: str | None = None,
    ) -> list[replies.ClaimSeen]:
        """Open claims with a lease, oldest first: of a partition, a task, a worker where named. No tokens.

        `prefix`: only those of partitions whose name begins with it.
        """
        return self._run(self._aio.open_claims(partition_id=partition_id, task=task, worker=worker, prefix=prefix))

    def seen_claim(self, claim_id: str) -> replies.ClaimSeen:
        """One claim with a lease, also for a while after it was closed. Raises ClaimNotFound."""
        return self._run(self._aio.seen_claim(claim_id))

    def dead(self, partition_id: str, task: str) -> list[replies.DeadSample]:
        """Rows that `task` will not get again, and why. Raises PartitionNotFound, PartitionCleared."""
        return self._run(self._aio.dead(partition_id, task))

    def release_worker(self, worker: str, *, idempotency_key: str | None = None) -> replies.ReleasedWorker:
        """A worker died: its leases end now as if their time was up, and its rows go out again."""
        return self._run(self._aio.release_worker(worker, idempotency_key=idempotency_key))

    def plan_clear(
        self,
        partition_id: str,
        *,
        global_indexes: Iterable[int] | None = None,
        keys: Iterable[str] | None = None,
        group_ids: Iterable[str | int] | None = None,
        key_prefix: str | None = None,
        all_rows: bool = False,
        where: Iterable[requests.Condition | Mapping[str, Any]] | None = None,
        tombstone: bool = False,
        idempotency_key: str | None = None,
    ) -> Clear:
        """Hide the selected rows (one of the selectors, or `all_rows`), and learn what was written of them, and where.

        Delete those bytes, then `commit_clear`; or `abort_clear`, and the rows are back. Unknown rows are skipped, and
        so are those of another clear (`skipped_clearing`). `where`: only rows whose custom meta fulfils all of these,
        e.g. `[{"path": "weight_version", "op": "<", "value": 8}]`. `tombstone`: once committed, creating one of the
        keys again raises SampleCleared. At most 65,536 rows.
        Raises PartitionNotFound, PartitionCleared, InvalidRequest.
        """
        return self._run(
            self._aio.plan_clear(
                partition_id,
                global_indexes=global_indexes,
                keys=keys,
                group_ids=group_ids,
                key_prefix=key_prefix,
                all_rows=all_rows,
                where=where,
                tombstone=tombstone,
                idempotency_key=idempotency_key,
            )
        )

    def commit_clear(self, clear_id: str, *, idempotency_key: str | None = None) -> replies.CommittedClear:
        """The bytes are deleted: the rows are gone for good. Again: the same answer.

        Raises ClearNotFound, and ClearClosed after an abort.
        """
        return self._run(self._aio.commit_clear(clear_id, idempotency_key=idempotency_key))

    def abort_clear(self, clear_id: str, *, idempotency_key: str | None = None) -> replies.AbortedClear:
        """The rows are back with all they had. Again: the same answer.

        Raises ClearNotFound, and ClearClosed after a commit.
        """
        return self._run(self._aio.abort_clear(clear_id, idempotency_key=idempotency_key))

    def clears(
        self,
        state: replies.ClearState | None = None,
        *,
        prefix: str | None = None,
    ) -> list[replies.ClearLine]:
        """Clears in the order they were planned: the pending ones, and the last closed. Pages are joined.

        `prefix`: only those of partitions whose name begins with it.
        """
        return self._run(self._aio.clears(state, prefix=prefix))

    def seen_clear(self, clear_id: str) -> Clear:
        """One clear, with its rows while it is pending: for whoever finishes what another began.

        Raises ClearNotFound.
        """
        return self._run(self._aio.seen_clear(clear_id))

    def create_checkpoint(self, name: str, *, idempotency_key: str | None = None) -> replies.Checkpoint:
        """Save the state; the service goes on meanwhile. `name`: A-Z, a-z, 0-9, and from the second on . _ -

        Raises CheckpointExists, InvalidRequest, JournalUnavailable (retried).
        """
        return self._run(self._aio.create_checkpoint(name, idempotency_key=idempotency_key))

    def checkpoints(self) -> list[replies.Checkpoint]:
        """All checkpoints, in the order they were made."""
        return self._run(self._aio.checkpoints())

    def checkpoint(self, name: str) -> replies.Checkpoint:
        """One checkpoint. Raises CheckpointNotFound."""
        return self._run(self._aio.checkpoint(name))

    def download_checkpoint(self, name: str, path: str | PathLike[str]) -> replies.Checkpoint:
        """Its file, as the file `path`: in the folder of the trainer's own checkpoint, say.

        `path` is written aside, compared with the checkpoint's `sha256`, and replaced once all of it is on disk.
        Raises CheckpointNotFound, CheckpointCorrupt, OSError; UnreadableReply where another file came.
        """
        return self._run(self._aio.download_checkpoint(name, path))

    def upload_checkpoint(self, name: str, path: str | PathLike[str]) -> replies.Checkpoint:
        """Give a file that was downloaded, from this service or another one, to this service, under this name.

        The state stays as it is until `restore_checkpoint`. Sent again, the same file is there already, so the call
        needs no key. Raises CheckpointExists where another file has the name, CheckpointCorrupt for what is no
        checkpoint, BodyTooLarge, JournalUnavailable (retried), OSError.
        """
        return self._run(self._aio.upload_checkpoint(name, path))

    def delete_checkpoint(self, name: str, *, idempotency_key: str | None = None) -> None:
        """Delete its file; the state stays as it is. Raises CheckpointNotFound."""
        return self._run(self._aio.delete_checkpoint(name, idempotency_key=idempotency_key))

    def restore_checkpoint(
        self,
        name: str,
        *,
        revived: Literal["as_is", "unproduced"] | None = None,
        idempotency_key: str | None = None,
    ) -> replies.Restored:
        """Go back to a checkpoint: a new epoch begins, and who waits or is pinned to another is EpochMismatch.

        `revived="unproduced"`: rows that were cleared, clearing or revoked since, whose bytes may be gone, are not
        ready in any field. This client goes on in the new epoch. Raises CheckpointNotFound, CheckpointCorrupt.
        """
        return self._run(self._aio.restore_checkpoint(name, revived=revived, idempotency_key=idempotency_key))
