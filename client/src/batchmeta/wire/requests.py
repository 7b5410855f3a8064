"""What a caller may send: one Struct per operation, named after its verb. Unknown members are refused by the decoder.
They are read side by side, hence the length.

`None` for an optional member means absent. A *selector* is at most one of `global_indexes`, `keys`, `group_ids` and
`key_prefix`.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, json

from .types import (
    MAX_ROWS,
    Cells,
    CheckpointName,
    Dtype,
    FieldName,
    FieldNames,
    GroupIds,
    GroupList,
    Index,
    Indexes,
    Key,
    Keys,
    LeaseSeconds,
    Lengths,
    Name,
    Rows,
    Shape,
    Shapes,
    TtlSeconds,
)

Include = Literal["keys", "group_ids", "field_schema", "custom_meta", "backend_meta", "field_status"]
Wait = Annotated[float, Meta(ge=0, le=60, description="seconds this call may wait for data")]
PageSize = Annotated[int, Meta(ge=1, le=10_000)]
Cursor = Annotated[str, Meta(min_length=1, max_length=200)]
MAX_CONDITIONS = 32
MAX_PATH = 32
MAX_VALUES = 1024
Token = Annotated[str, Meta(min_length=1, max_length=200)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class Request(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True, omit_defaults=True):
    """Base of all request bodies."""


Text = Annotated[str, Meta(max_length=65_536)]
Path = (
    Annotated[str, Meta(min_length=1, max_length=4096, description="members joined by dots")]
    | Annotated[list[Annotated[str, Meta(max_length=512)]], Meta(min_length=1, max_length=MAX_PATH)]
)
Scalar = bool | int | float | Text


class Condition(Request, frozen=True):
    """One condition on a row's custom meta; a row that has no such path, or another type there, fails it.

    `value` is what to compare with: an array for `in`, a string for `prefix`, true (or left out) or false for `exists`.
    """

    path: Path
    op: Literal["==", "!=", "<", "<=", ">", ">=", "in", "prefix", "exists"]
    value: Scalar | Annotated[list[Scalar], Meta(max_length=MAX_VALUES)] | None = None


Where = Annotated[
    list[Condition], Meta(max_length=MAX_CONDITIONS, description="all of these must hold, over custom meta")
]


class FieldSchema(Request, frozen=True):
    """One field's schema as a writer gives it (api.md section 4); exactly one of shape, shapes and lengths at most."""

    kind: Literal["tensor", "object"] | None = None
    dtype: Dtype | None = None
    ragged: bool | None = None
    shape: Shape | None = None
    shapes: Shapes | None = None
    lengths: Lengths | None = None


class FieldDeclaration(Request, frozen=True):
    """One field's schema as a partition declares it: no per-sample shapes, and `shape` may be left out."""

    kind: Literal["tensor", "object"] | None = None
    dtype: Dtype | None = None
    ragged: bool | None = None
    shape: Shape | None = None


class PutPartition(Request, frozen=True):
    """Settings of a partition. `{}` gives none."""

    expected_samples: Count | None = None
    max_samples: Count | None = None
    max_attempts: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None
    fields: dict[FieldName, FieldDeclaration] | None = None


class PatchPartition(Request, frozen=True):
    """What to change of a partition's settings; what is left out stays."""

    expected_samples: Count | None = None
    max_samples: Count | None = None
    max_attempts: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None


class Insert(Request, frozen=True):
    """New rows: `count` of them, or one per key. A key that exists keeps its index.

    With `ttl_s`, those that get no field in time disappear.
    """

    count: Rows | None = None
    keys: Keys | None = None
    group_ids: GroupIds | None = None
    custom_meta: Cells | None = None
    expand: bool | None = None
    ttl_s: TtlSeconds | None = None


class Produce(Request, frozen=True):
    """The data of these fields is in the storage backend, for these rows."""

    field_schema: dict[FieldName, FieldSchema]
    global_indexes: Indexes | None = None
    keys: Keys | None = None
    create: bool | None = None
    backend_meta: dict[FieldName, Cells] | None = None
    custom_meta: Cells | None = None
    group_ids: GroupIds | None = None
    on_cleared: Literal["refuse", "skip"] | None = None


class Revoke(Request, frozen=True):
    """The storage backend lost the bytes of these fields of the selected rows; the selector is required."""

    fields: Annotated[list[FieldName], Meta(min_length=1, max_length=MAX_ROWS)]
    global_indexes: Indexes | None = None
    keys: Keys | None = None
    group_ids: GroupList | None = None
    key_prefix: Key | None = None


class PatchCustomMeta(Request, frozen=True):
    """RFC 7396 patches, one per row; `null` leaves a row alone."""

    custom_meta: Cells
    global_indexes: Indexes | None = None
    keys: Keys | None = None
    if_revision: Count | None = None
    ttl_s: TtlSeconds | None = None


class PatchBackendMeta(Request, frozen=True):
    """The storage backend moved bytes: new cells for rows that exist."""

    backend_meta: dict[FieldName, Cells]
    global_indexes: Indexes | None = None
    keys: Keys | None = None


class Read(Request, frozen=True):
    """Batch meta of the selected rows (absent selector: all, in index order). Consumes nothing."""

    fields: FieldNames | None = None
    global_indexes: Indexes | None = None
    keys: Keys | None = None
    group_ids: GroupList | None = None
    key_prefix: Key | None = None
    include: list[Include] | None = None
    expand: bool | None = None
    compact: bool | None = None
    strict: bool | None = None
    limit: Rows | None = None
    cursor: Cursor | None = None


class ReadBackendMeta(Request, frozen=True):
    """Where the bytes of the selected cells lie."""

    fields: FieldNames | None = None
    global_indexes: Indexes | None = None
    keys: Keys | None = None
    group_ids: GroupList | None = None
    key_prefix: Key | None = None
    expand: bool | None = None
    limit: Rows | None = None
    cursor: Cursor | None = None


class LookupKeys(Request, frozen=True):
    """The keys of these indexes."""

    global_indexes: Indexes


class DeleteSamples(Request, frozen=True):
    """Rows to remove at once; the selector is required."""

    global_indexes: Indexes | None = None
    keys: Keys | None = None
    group_ids: GroupList | None = None
    key_prefix: Key | None = None
    where: Where | None = None


class PlanClear(Request, frozen=True):
    """Rows to hide until the clear is committed or aborted: a selector, or `all`."""

    global_indexes: Indexes | None = None
    keys: Keys | None = None
    group_ids: GroupList | None = None
    key_prefix: Key | None = None
    all: bool | None = None
    where: Where | None = None
    tombstone: bool | None = None
    expand: bool | None = None


class Sampler(Request, frozen=True):
    """Which rows to take: a sampler's name with its arguments beside it (api.md section 8)."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    n_samples_per_prompt: Rows | None = None
    group_by: Literal["group_id", "position"] | None = None
    dp_rank: Index | None = None
    batch_index: Index | None = None
    dp_size: Rows | None = None
    weight: Path | None = None
    budget: Annotated[float, Meta(gt=0)] | None = None
    seed: Count | None = None


# An operator's own sampler takes arguments that are not known here; each sampler checks its own.
_SAMPLER = json.schema(Sampler)["$defs"]["Sampler"]
SamplerArguments = Annotated[
    dict[str, Any],
    Meta(
        max_length=64,
        description="a sampler's name with its arguments beside it; an operator's own sampler has others",
        extra_json_schema={"properties": _SAMPLER["properties"], "required": _SAMPLER["required"]},
    ),
]


class Claim(Request, frozen=True):
    """Rows whose requested fields are all produced and that this task has not consumed."""

    fields: Annotated[list[FieldName], Meta(min_length=1, max_length=65_536)]
    batch_size: Rows
    min_batch_size: Rows | None = None
    wait_s: Wait | None = None
    sampler: SamplerArguments | None = None
    include: list[Include] | None = None
    expand: bool | None = None
    compact: bool | None = None
    where: Where | None = None
    ack: Literal["on_dispatch", "explicit"] | None = None
    lease_s: LeaseSeconds | None = None
    worker: Name | None = None


class Rejected(Request, frozen=True):
    """A row that the task must not get again, and why."""

    global_index: Index
    reason: Annotated[str, Meta(min_length=1, max_length=1000)]


class AckClaim(Request, frozen=True):
    """What became of a claim's rows. Nothing named: all are accepted. `all`: those open and not named elsewhere.

    A release takes back the attempt that the hand-out was, unless it `counts`.
    """

    token: Token
    accept: Indexes | Literal["all"] | None = None
    release: Indexes | None = None
    reject: Annotated[list[Rejected], Meta(max_length=MAX_ROWS)] | None = None
    counts: bool | None = None


class ExtendClaim(Request, frozen=True):
    """The lease ends `lease_s` from now."""

    token: Token
    lease_s: LeaseSeconds


class Empty(Request, frozen=True):
    """A body without members."""


class ListPartitions(Request, frozen=True):
    prefix: str | None = None
    limit: PageSize | None = None
    cursor: Cursor | None = None


class PartitionQuery(Request, frozen=True):
    """`wait_s` only with `revision`: wait until the partition is past it."""

    revision: Count | None = None
    wait_s: Wait | None = None


class ReadQuery(Request, frozen=True):
    """Batch meta of all rows, as a GET."""

    fields: str | None = None
    include: str | None = None
    expand: bool | None = None
    compact: bool | None = None
    limit: Rows | None = None
    cursor: Cursor | None = None


class BackendMetaQuery(Request, frozen=True):
    fields: str | None = None
    global_indexes: str | None = None
    expand: bool | None = None
    limit: Rows | None = None
    cursor: Cursor | None = None


class ProductionQuery(Request, frozen=True):
    fields: str
    limit: PageSize | None = None
    cursor: Cursor | None = None


class ListClaims(Request, frozen=True):
    """Open claims, of one partition, task or worker where named."""

    partition_id: Name | None = None
    task: Name | None = None
    worker: Name | None = None


class ListClears(Request, frozen=True):
    """Clears in the order planned, of one state where named."""

    state: Literal["pending", "committed", "aborted"] | None = None
    limit: PageSize | None = None
    cursor: Cursor | None = None


class ClearQuery(Request, frozen=True):
    expand: bool | None = None


class CreateCheckpoint(Request, frozen=True):
    name: CheckpointName


class RestoreCheckpoint(Request, frozen=True):
    """`revived`: what becomes of rows whose bytes may be gone; `unproduced`: none of their fields is ready."""

    revived: Literal["as_is", "unproduced"] | None = None


class ListKeys(Request, frozen=True):
    """`since_revision`: only what changed after it, in revision order; `wait_s` only with it: until something did.

    `where` is the JSON of a list of conditions.
    """

    prefix: str | None = None
    limit: PageSize | None = None
    cursor: Cursor | None = None
    since_revision: Count | None = None
    wait_s: Wait | None = None
    where: Annotated[str, Meta(max_length=1_048_576, description="JSON: an array of conditions")] | None = None


class ConsumptionQuery(Request, frozen=True):
    counts_only: bool | None = None
    limit: PageSize | None = None
    cursor: Cursor | None = None
