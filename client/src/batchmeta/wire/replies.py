"""What the service answers: one Struct per reply. Columns stay JSON bytes (`msgspec.Raw`) on both sides of the wire.

Clients ignore members they do not know, so these do not forbid unknown ones. `UNSET` is a member that is not there.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from .members import (
    Ack,
    Age,
    Attempt,
    BitColumns,
    CellColumns,
    ClaimId,
    ClearCount,
    Cleared,
    ClearId,
    Consumed,
    ConsumptionStatus,
    CreatedAt,
    DeadNow,
    Done,
    DtypeOut,
    ExpectedSamples,
    ExpiresIn,
    FieldNamesOut,
    Kind,
    LeasedNow,
    MaxSamples,
    MissingFields,
    MissingKeys,
    NextCursor,
    NumFields,
    NumSamples,
    PartitionId,
    Ragged,
    Ready,
    Removed,
    ShapeOut,
    SharedCellColumns,
    Skipped,
    SkippedClearing,
    StillOpen,
    TaskName,
    Token,
    Total,
    Wanted,
    WorkerName,
)
from .types import (
    AttemptColumn,
    BitArray,
    BitColumn,
    BitRows,
    CellColumn,
    GroupColumn,
    IndexArray,
    KeyColumn,
    MetaColumn,
    ShapeColumn,
    SizeColumn,
)

Revision = Annotated[int, Meta(ge=0, description="the partition's last change, as of this reply")]
State = Annotated[Literal["open", "sealed"], Meta(description="`sealed`: no more samples may come")]
ClearState = Annotated[
    Literal["pending", "committed", "aborted"], Meta(description="`pending` until it is committed or aborted")
]


class Reply(Struct, kw_only=True):
    """Base of all reply bodies."""


class FieldOut(Reply, omit_defaults=True):
    """A field's schema in batch meta: of `shape`, `shapes` and `lengths` the one that applies."""

    kind: Kind
    dtype: DtypeOut | UnsetType = UNSET
    ragged: Ragged | UnsetType = UNSET
    shape: ShapeOut | UnsetType | None = UNSET
    shapes: ShapeColumn | UnsetType = UNSET
    lengths: SizeColumn | UnsetType = UNSET


FieldsOut = Annotated[dict[str, FieldOut], Meta(description="the schema of each field, by name")]


class FieldSummary(Reply, omit_defaults=True):
    """A field of a partition, and for how many of its rows it is produced."""

    kind: Kind
    produced: Annotated[int, Meta(description="rows for which the field is produced")]
    dtype: DtypeOut | UnsetType = UNSET
    ragged: Ragged | UnsetType = UNSET
    shape: ShapeOut | UnsetType | None = UNSET


class TaskSummary(Reply):
    """Counts of one consumer: consumed since its last reset; leased and dead rows now."""

    consumed: Consumed
    leased: LeasedNow
    dead: DeadNow


class Partition(Reply):
    partition_id: PartitionId
    revision: Revision
    state: State
    created_at: CreatedAt
    expected_samples: ExpectedSamples | None
    max_samples: MaxSamples | None
    max_attempts: Annotated[int, Meta(description="hand-outs without an accept until a sample is dead")]
    num_samples: NumSamples
    num_fields: NumFields
    fields: Annotated[dict[str, FieldSummary], Meta(description="fields known now, by name")]
    tasks: Annotated[dict[str, TaskSummary], Meta(description="tasks from their first hand-out on, by name")]


class PartitionLine(Reply):
    partition_id: PartitionId
    state: State
    num_samples: NumSamples
    num_fields: NumFields
    revision: Revision
    created_at: CreatedAt


class Partitions(Reply):
    partitions: Annotated[list[PartitionLine], Meta(description="one line per partition, in the order they were made")]
    next_cursor: NextCursor | None


class DeletedPartition(Reply):
    partition_id: PartitionId
    revision: Revision
    cleared_samples: Annotated[int, Meta(description="samples that went with it, those of its pending clears too")]


class BatchMeta(Reply, omit_defaults=True):
    """The description of a list of rows (contract#batch-meta); every column has one value per row, in row order."""

    partition_id: PartitionId
    revision: Revision
    size: Annotated[int, Meta(description="number of rows")]
    is_ready: Annotated[bool, Meta(description="true: there is a row, and the status of all is 1")]
    global_indexes: IndexArray
    fields: FieldNamesOut
    missing_fields: MissingFields
    production_status: Annotated[BitArray, Meta(description="1 where every field of `fields` is produced for the row")]
    keys: KeyColumn | UnsetType = UNSET
    group_ids: GroupColumn | UnsetType = UNSET
    field_schema: FieldsOut | UnsetType = UNSET
    custom_meta: MetaColumn | UnsetType = UNSET
    backend_meta: SharedCellColumns | UnsetType = UNSET
    field_status: BitColumns | UnsetType = UNSET
    missing_keys: MissingKeys | UnsetType = UNSET
    next_cursor: NextCursor | UnsetType | None = UNSET
    created: Annotated[int, Meta(description="rows that are new")] | UnsetType = UNSET


class Produced(Reply, omit_defaults=True):
    """The rows written; `skipped`: the cleared ones as the caller named them, where it asked to leave them out."""

    partition_id: PartitionId
    revision: Revision
    global_indexes: IndexArray
    created: Annotated[int, Meta(description="rows that are new")]
    skipped: Skipped | UnsetType = UNSET


class Revoked(Reply):
    """How many cells were ready and are not now."""

    partition_id: PartitionId
    revision: Revision
    revoked: Annotated[int, Meta(description="cells that were ready and are not now")]


class PatchedCustomMeta(Reply):
    partition_id: PartitionId
    revision: Revision


class PatchedBackendMeta(Reply):
    partition_id: PartitionId
    revision: Revision
    global_indexes: IndexArray


class BackendMeta(Reply):
    partition_id: PartitionId
    revision: Revision
    global_indexes: IndexArray
    backend_meta: CellColumns
    missing_keys: MissingKeys
    missing_fields: MissingFields
    next_cursor: NextCursor | None


class ProductionStatus(Reply):
    partition_id: PartitionId
    revision: Revision
    global_indexes: IndexArray
    fields: FieldNamesOut
    production_status: BitRows
    next_cursor: NextCursor | None


class FoundKeys(Reply):
    partition_id: PartitionId
    revision: Revision
    keys: Annotated[
        list[str | None], Meta(description="a key per index; null for samples without one and for indexes not held")
    ]


class KeyLine(Reply):
    key: Annotated[str, Meta(description="the sample's key")]
    global_index: Annotated[int, Meta(description="the sample's index")]
    custom_meta: Annotated[Raw, Meta(description="its custom meta", extra_json_schema={"type": "object"})]
    revision: Annotated[Revision, Meta(description="the last change of its key, group, schema, readiness or metas")]


class KeyList(Reply, omit_defaults=True):
    """With `since_revision` also the keys that left, and `revision` is the last one of which all is told."""

    partition_id: PartitionId
    revision: Revision
    keys: Annotated[list[KeyLine], Meta(description="one line per sample that has a key")]
    next_cursor: NextCursor | None
    removed: Removed | UnsetType = UNSET


class DeletedSamples(Reply):
    partition_id: PartitionId
    revision: Revision
    cleared: Cleared
    skipped_clearing: SkippedClearing


class ClearField(Reply):
    """Per row: was the field ever written, and where its bytes lie."""

    written: Annotated[BitColumn, Meta(description="1 where the field was ever written")]
    backend_meta: CellColumn


class ClearPlan(Reply):
    """What a clear takes away, in index order; fields that none of its rows has are left out."""

    global_indexes: IndexArray
    keys: Annotated[KeyColumn, Meta(description="a key or null per row, or {const}")]
    fields: Annotated[dict[str, ClearField], Meta(description="by field, what was written and where it lies")]


PlanOut = Annotated[ClearPlan, Meta(description="what to delete before the commit; while it is pending")]


class PlannedClear(Reply):
    """201: the rows are hidden; delete what the plan names, then commit. `skipped_clearing`: another clear's rows."""

    partition_id: PartitionId
    revision: Revision
    clear_id: ClearId
    state: ClearState
    plan: PlanOut
    skipped_clearing: SkippedClearing


class CommittedClear(Reply):
    partition_id: PartitionId
    revision: Revision
    clear_id: ClearId
    state: ClearState
    cleared: Cleared


class AbortedClear(Reply):
    partition_id: PartitionId
    revision: Revision
    clear_id: ClearId
    state: ClearState


class ClearLine(Reply):
    """A clear in a list: how many rows it has or had, and for how many seconds it is known."""

    clear_id: ClearId
    partition_id: PartitionId
    state: ClearState
    count: ClearCount
    age_s: Age


class ClearList(Reply):
    clears: Annotated[list[ClearLine], Meta(description="one line per clear, in the order planned")]
    next_cursor: NextCursor | None


class ClearSeen(Reply, omit_defaults=True):
    """One clear; `plan` while it is pending."""

    partition_id: PartitionId
    revision: Revision
    clear_id: ClearId
    state: ClearState
    count: ClearCount
    age_s: Age
    plan: PlanOut | UnsetType = UNSET


class ClaimInfo(Reply, omit_defaults=True):
    """What was handed out. `ack` says when the rows count as consumed: `on_dispatch` at once, `explicit` when accepted.

    Of a lease: `token` proves it, `attempts` counts each row's hand-outs and `attempt` is their highest.
    """

    claim_id: ClaimId
    task: TaskName
    ack: Ack
    worker: WorkerName | None
    token: Token | UnsetType = UNSET
    attempt: Attempt | UnsetType = UNSET
    attempts: AttemptColumn | UnsetType = UNSET
    expires_in_s: ExpiresIn | UnsetType = UNSET


class Acked(Reply):
    """Rows by what became of them through this ack; `open` are still held."""

    partition_id: PartitionId
    revision: Revision
    accepted: Annotated[int, Meta(description="rows accepted")]
    released: Annotated[int, Meta(description="rows released")]
    rejected: Annotated[int, Meta(description="rows rejected")]
    open: StillOpen


class ExtendedLease(Reply):
    open: StillOpen
    expires_in_s: ExpiresIn


class ClaimSeen(Reply):
    """A claim as others see it, without its token. Times in seconds; `open` rows are still held."""

    claim_id: ClaimId
    partition_id: PartitionId
    task: TaskName
    worker: WorkerName | None
    open: StillOpen
    attempt: Attempt
    age_s: Age
    expires_in_s: ExpiresIn


class ClaimList(Reply):
    claims: Annotated[list[ClaimSeen], Meta(description="open claims, oldest first")]


class DeadSample(Reply):
    global_index: Annotated[int, Meta(description="the sample's index")]
    key: Annotated[str, Meta(description="the sample's key, or null")] | None
    reason: Annotated[str, Meta(description="why: as it was rejected, or `max-attempts`")]
    attempts: Annotated[int, Meta(description="how often it was handed out")]


class DeadList(Reply):
    partition_id: PartitionId
    revision: Revision
    dead: Annotated[list[DeadSample], Meta(description="one line per dead sample")]


class ReleasedWorker(Reply):
    """Rows that a worker held, and the claims they were of."""

    released: Annotated[int, Meta(description="rows that are free again")]
    claims: Annotated[list[str], Meta(description="ids of the claims that held them")]


class Blocking(Reply, omit_defaults=True):
    """One reason why rows are not handed out, how many rows it holds back, and up to ten of them."""

    reason: Annotated[str, Meta(description="name of the reason")]
    count: Annotated[int, Meta(description="rows that it holds back")]
    global_indexes: Annotated[list[int], Meta(description="up to ten of them")]
    field: Annotated[str, Meta(description="the field that is missing")] | UnsetType = UNSET
    group_ids: Annotated[list[str | int], Meta(description="the groups, where it is about groups")] | UnsetType = UNSET


class Claimed(Reply):
    """201: a claim and its batch."""

    partition_id: PartitionId
    revision: Revision
    claim: Annotated[ClaimInfo, Meta(description="what was handed out")]
    batch: Annotated[BatchMeta, Meta(description="its rows")]


class NotClaimed(Reply):
    """200: nothing was handed out, and why.

    `stranded`, with `done`: rows are left of a sealed partition, so many, and this claim's sampler and `where` could
    never hand one of them out.
    """

    partition_id: PartitionId
    revision: Revision
    claim: Annotated[None, Meta(description="null: nothing was handed out")]
    batch: Annotated[BatchMeta, Meta(description="a batch without rows")]
    ready: Ready
    wanted: Wanted
    done: Done
    blocking: Annotated[list[Blocking], Meta(description="what holds rows back")]
    stranded: Annotated[int | UnsetType, Meta(description="rows left that this claim could never get")] = UNSET


class Explained(Reply):
    """What a claim would find, and the task's account."""

    partition_id: PartitionId
    revision: Revision
    ready: Ready
    wanted: Wanted
    total: Total
    consumed: Consumed
    leased: LeasedNow
    dead: DeadNow
    done: Done
    blocking: Annotated[list[Blocking], Meta(description="what holds rows back")]


class Consumption(Reply, omit_defaults=True):
    partition_id: PartitionId
    revision: Revision
    consumed: Consumed
    leased: LeasedNow
    dead: DeadNow
    total: Total
    done: Done
    global_indexes: IndexArray | UnsetType = UNSET
    consumption_status: ConsumptionStatus | UnsetType = UNSET
    next_cursor: NextCursor | UnsetType | None = UNSET


class ResetConsumption(Reply):
    partition_id: PartitionId
    revision: Revision
    reset: Annotated[int, Meta(description="rows that were consumed, leased or dead")]


class Health(Reply):
    status: Annotated[Literal["ok"], Meta(description="always ok")]


class Readiness(Reply):
    status: Annotated[Literal["ready"], Meta(description="always ready")]


class Limits(Reply):
    """What one call may ask for. Sizes in bytes."""

    max_rows: Annotated[int, Meta(description="rows of one call or reply")]
    max_body_bytes: Annotated[int, Meta(description="bytes of a request body")]
    max_checkpoint_bytes: Annotated[int, Meta(description="bytes of a checkpoint that is uploaded")]
    max_cell_bytes: Annotated[int, Meta(description="bytes of one custom or backend meta value")]
    max_depth: Annotated[int, Meta(description="levels of nesting of a body")]
    max_page: Annotated[int, Meta(description="lines of one page of a list")]
    max_wait_s: Annotated[int, Meta(description="seconds a call may wait")]
    max_waiting_per_client: Annotated[int, Meta(description="calls of one address that may wait at once")]


class Checkpoint(Reply):
    """A saved state: `revision` is the service's, `sha256` in hex is of its file, of `bytes` bytes."""

    name: Annotated[str, Meta(description="its name")]
    revision: Annotated[Revision, Meta(description="the service's revision that it holds")]
    bytes: Annotated[int, Meta(description="size of its file")]
    sha256: Annotated[str, Meta(description="of its file, in hex")]
    created_at: CreatedAt


class CheckpointList(Reply):
    checkpoints: Annotated[list[Checkpoint], Meta(description="in the order they were made")]


class DeletedCheckpoint(Reply):
    """Nothing to tell."""


class Revived(Reply):
    """`ranges`: their global indexes, each range with both ends."""

    count: Annotated[int, Meta(description="how many samples")]
    ranges: Annotated[list[tuple[int, int]], Meta(description="their global indexes, each range with both ends")]


class Restored(Reply):
    """The epoch that began. `revived`: rows cleared, clearing or revoked since; `burnt`: indexes given out since."""

    epoch: Annotated[int, Meta(description="the epoch that began")]
    revived: Annotated[Revived, Meta(description="samples that are back although their bytes may be gone")]
    burnt: Annotated[tuple[int, int], Meta(description="indexes given out since, both ends; null if none")] | None


class Server(Reply):
    name: Annotated[str, Meta(description="always batchmeta")]
    version: Annotated[str, Meta(description="version of the service")]
    api: Annotated[str, Meta(description="version of this contract")]
    device: Annotated[str, Meta(description="where tensors live")]
    durability: Annotated[
        Literal["memory", "wal", "replicated"], Meta(description="`memory`: all is lost at a restart; `wal`: on disk")
    ]
    epoch: Annotated[int, Meta(description="rises with each restore")]
    revision: Annotated[Revision, Meta(description="number of the last committed change")]
    started_at: Annotated[str, Meta(description="RFC 3339, UTC")]
    limits: Annotated[Limits, Meta(description="what one call may ask for")]


class ProblemError(Reply):
    loc: Annotated[str, Meta(description="which member, e.g. body.fields[0]")]
    msg: Annotated[str, Meta(description="what to change there")]


class Problem(Reply, omit_defaults=True):
    """RFC 9457 problem details; `code` is the stable name, `detail` says what to change."""

    type: Annotated[str, Meta(description="urn:batchmeta:problem: and the code")]
    title: Annotated[str, Meta(description="the code in words")]
    status: Annotated[int, Meta(description="the HTTP status")]
    detail: Annotated[str, Meta(description="what to change")]
    code: Annotated[str, Meta(description="the stable name")]
    retryable: Annotated[bool, Meta(description="true: the same call may succeed later")]
    request_id: Annotated[str, Meta(description="as X-Request-ID: the log has it")]
    reason: Annotated[str, Meta(description="why the service is not ready")] | UnsetType = UNSET
    errors: Annotated[list[ProblemError], Meta(description="which members, up to 20")] | UnsetType = UNSET
    global_indexes: Annotated[list[int], Meta(description="the offending rows")] | UnsetType = UNSET
    keys: Annotated[list[str], Meta(description="the offending keys")] | UnsetType = UNSET
    fields: Annotated[list[str], Meta(description="the offending fields")] | UnsetType = UNSET
