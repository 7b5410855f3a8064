"""What the service answers: one Struct per reply. Columns stay JSON bytes (`msgspec.Raw`) on both sides of the wire.

One file, hence its length: the replies are read side by side. Clients ignore members they do not know, so these do not
forbid unknown ones. `UNSET` is a member that is not there.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

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

Revision = Annotated[int, Meta(ge=0)]
State = Literal["open", "sealed"]
ClearState = Literal["pending", "committed", "aborted"]


class Reply(Struct, kw_only=True):
    """Base of all reply bodies."""


class FieldOut(Reply, omit_defaults=True):
    """A field's schema in batch meta: of `shape`, `shapes` and `lengths` the one that applies."""

    kind: Literal["tensor", "object"]
    dtype: str | UnsetType = UNSET
    ragged: bool | UnsetType = UNSET
    shape: list[int] | UnsetType | None = UNSET
    shapes: ShapeColumn | UnsetType = UNSET
    lengths: SizeColumn | UnsetType = UNSET


class FieldSummary(Reply, omit_defaults=True):
    """A field of a partition, and for how many of its rows it is produced."""

    kind: Literal["tensor", "object"]
    produced: int
    dtype: str | UnsetType = UNSET
    ragged: bool | UnsetType = UNSET
    shape: list[int] | UnsetType | None = UNSET


class TaskSummary(Reply):
    """Counts of one consumer: consumed since its last reset; leased and dead rows now."""

    consumed: int
    leased: int
    dead: int


class Partition(Reply):
    partition_id: str
    revision: Revision
    state: State
    created_at: str
    expected_samples: int | None
    max_samples: int | None
    max_attempts: int
    num_samples: int
    num_fields: int
    fields: dict[str, FieldSummary]
    tasks: dict[str, TaskSummary]


class PartitionLine(Reply):
    partition_id: str
    state: State
    num_samples: int
    num_fields: int
    revision: Revision
    created_at: str


class Partitions(Reply):
    partitions: list[PartitionLine]
    next_cursor: str | None


class DeletedPartition(Reply):
    partition_id: str
    revision: Revision
    cleared_samples: int


class BatchMeta(Reply, omit_defaults=True):
    """The description of a list of rows (api.md section 6); every column has one value per row, in row order."""

    partition_id: str
    revision: Revision
    size: int
    is_ready: bool
    global_indexes: IndexArray
    fields: list[str]
    missing_fields: list[str]
    production_status: BitArray
    keys: KeyColumn | UnsetType = UNSET
    group_ids: GroupColumn | UnsetType = UNSET
    field_schema: dict[str, FieldOut] | UnsetType = UNSET
    custom_meta: MetaColumn | UnsetType = UNSET
    backend_meta: dict[str, CellColumn] | UnsetType = UNSET
    field_status: dict[str, BitColumn] | UnsetType = UNSET
    missing_keys: list[str] | UnsetType = UNSET
    next_cursor: str | UnsetType | None = UNSET
    created: int | UnsetType = UNSET


class Produced(Reply, omit_defaults=True):
    """The rows written; `skipped`: the cleared ones as the caller named them, where it asked to leave them out."""

    partition_id: str
    revision: Revision
    global_indexes: IndexArray
    created: int
    skipped: list[int | str] | UnsetType = UNSET


class Revoked(Reply):
    """How many cells were ready and are not now."""

    partition_id: str
    revision: Revision
    revoked: int


class PatchedCustomMeta(Reply):
    partition_id: str
    revision: Revision


class PatchedBackendMeta(Reply):
    partition_id: str
    revision: Revision
    global_indexes: IndexArray


class BackendMeta(Reply):
    partition_id: str
    revision: Revision
    global_indexes: IndexArray
    backend_meta: dict[str, CellColumn]
    missing_keys: list[str]
    missing_fields: list[str]
    next_cursor: str | None


class ProductionStatus(Reply):
    partition_id: str
    revision: Revision
    global_indexes: IndexArray
    fields: list[str]
    production_status: BitRows
    next_cursor: str | None


class FoundKeys(Reply):
    partition_id: str
    revision: Revision
    keys: list[str | None]


class KeyLine(Reply):
    key: str
    global_index: int
    custom_meta: Annotated[Raw, Meta(extra_json_schema={"type": "object"})]
    revision: Revision


class KeyList(Reply, omit_defaults=True):
    """With `since_revision` also the keys that left, and `revision` is the last one of which all is told."""

    partition_id: str
    revision: Revision
    keys: list[KeyLine]
    next_cursor: str | None
    removed: list[str] | UnsetType = UNSET


class DeletedSamples(Reply):
    partition_id: str
    revision: Revision
    cleared: int
    skipped_clearing: list[int]


class ClearField(Reply):
    """Per row: was the field ever written, and where its bytes lie."""

    written: BitColumn
    backend_meta: CellColumn


class ClearPlan(Reply):
    """What a clear takes away, in index order; fields that none of its rows has are left out."""

    global_indexes: IndexArray
    keys: KeyColumn
    fields: dict[str, ClearField]


class PlannedClear(Reply):
    """201: the rows are hidden; delete what the plan names, then commit. `skipped_clearing`: another clear's rows."""

    partition_id: str
    revision: Revision
    clear_id: str
    state: ClearState
    plan: ClearPlan
    skipped_clearing: list[int]


class CommittedClear(Reply):
    partition_id: str
    revision: Revision
    clear_id: str
    state: ClearState
    cleared: int


class AbortedClear(Reply):
    partition_id: str
    revision: Revision
    clear_id: str
    state: ClearState


class ClearLine(Reply):
    """A clear in a list: how many rows it has or had, and for how many seconds it is known."""

    clear_id: str
    partition_id: str
    state: ClearState
    count: int
    age_s: float


class ClearList(Reply):
    clears: list[ClearLine]
    next_cursor: str | None


class ClearSeen(Reply, omit_defaults=True):
    """One clear; `plan` while it is pending."""

    partition_id: str
    revision: Revision
    clear_id: str
    state: ClearState
    count: int
    age_s: float
    plan: ClearPlan | UnsetType = UNSET


class ClaimInfo(Reply, omit_defaults=True):
    """What was handed out. `ack` says when the rows count as consumed: `on_dispatch` at once, `explicit` when accepted.

    Of a lease: `token` proves it, `attempts` counts each row's hand-outs and `attempt` is their highest.
    """

    claim_id: str
    task: str
    ack: Literal["on_dispatch", "explicit"]
    worker: str | None
    token: str | UnsetType = UNSET
    attempt: int | UnsetType = UNSET
    attempts: AttemptColumn | UnsetType = UNSET
    expires_in_s: float | UnsetType = UNSET


class Acked(Reply):
    """Rows by what became of them through this ack; `open` are still held."""

    partition_id: str
    revision: Revision
    accepted: int
    released: int
    rejected: int
    open: int


class ExtendedLease(Reply):
    open: int
    expires_in_s: float


class ClaimSeen(Reply):
    """A claim as others see it, without its token. Times in seconds; `open` rows are still held."""

    claim_id: str
    partition_id: str
    task: str
    worker: str | None
    open: int
    attempt: int
    age_s: float
    expires_in_s: float


class ClaimList(Reply):
    claims: list[ClaimSeen]


class DeadSample(Reply):
    global_index: int
    key: str | None
    reason: str
    attempts: int


class DeadList(Reply):
    partition_id: str
    revision: Revision
    dead: list[DeadSample]


class ReleasedWorker(Reply):
    """Rows that a worker held, and the claims they were of."""

    released: int
    claims: list[str]


class Blocking(Reply, omit_defaults=True):
    """One reason why rows are not handed out, how many rows it holds back, and up to ten of them."""

    reason: str
    count: int
    global_indexes: list[int]
    field: str | UnsetType = UNSET
    group_ids: list[str | int] | UnsetType = UNSET


class Claimed(Reply):
    """201: a claim and its batch."""

    partition_id: str
    revision: Revision
    claim: ClaimInfo
    batch: BatchMeta


class NotClaimed(Reply):
    """200: nothing was handed out, and why.

    `stranded`, with `done`: rows are left of a sealed partition, so many, and this claim's sampler and `where` could
    never hand one of them out.
    """

    partition_id: str
    revision: Revision
    claim: None
    batch: BatchMeta
    ready: int
    wanted: int
    done: bool
    blocking: list[Blocking]
    stranded: int | UnsetType = UNSET


class Explained(Reply):
    """What a claim would find, and the task's account."""

    partition_id: str
    revision: Revision
    ready: int
    wanted: int
    total: int
    consumed: int
    leased: int
    dead: int
    done: bool
    blocking: list[Blocking]


class Consumption(Reply, omit_defaults=True):
    partition_id: str
    revision: Revision
    consumed: int
    leased: int
    dead: int
    total: int
    done: bool
    global_indexes: IndexArray | UnsetType = UNSET
    consumption_status: BitArray | UnsetType = UNSET
    next_cursor: str | UnsetType | None = UNSET


class ResetConsumption(Reply):
    partition_id: str
    revision: Revision
    reset: int


class Health(Reply):
    status: Literal["ok"]


class Readiness(Reply):
    status: Literal["ready"]


class Limits(Reply):
    """What one call may ask for. Sizes in bytes."""

    max_rows: int
    max_body_bytes: int
    max_cell_bytes: int
    max_depth: int
    max_page: int
    max_wait_s: int
    max_waiting_per_client: int


class Checkpoint(Reply):
    """A saved state: `revision` is the service's, `sha256` in hex is of its file, of `bytes` bytes."""

    name: str
    revision: Revision
    bytes: int
    sha256: str
    created_at: str


class CheckpointList(Reply):
    checkpoints: list[Checkpoint]


class DeletedCheckpoint(Reply):
    """Nothing to tell."""


class Revived(Reply):
    """`ranges`: their global indexes, each range with both ends."""

    count: int
    ranges: list[tuple[int, int]]


class Restored(Reply):
    """The epoch that began. `revived`: rows cleared, clearing or revoked since; `burnt`: indexes given out since."""

    epoch: int
    revived: Revived
    burnt: tuple[int, int] | None


class Server(Reply):
    name: str
    version: str
    api: str
    device: str
    durability: Literal["memory", "wal", "replicated"]
    epoch: int
    revision: Revision
    started_at: str
    limits: Limits


class ProblemError(Reply):
    loc: str
    msg: str


class Problem(Reply, omit_defaults=True):
    """RFC 9457 problem details; `code` is the stable name, `detail` says what to change."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    retryable: bool
    request_id: str
    reason: str | UnsetType = UNSET
    errors: list[ProblemError] | UnsetType = UNSET
    global_indexes: list[int] | UnsetType = UNSET
    keys: list[str] | UnsetType = UNSET
    fields: list[str] | UnsetType = UNSET
