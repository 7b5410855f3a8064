"""What a caller may send: one Struct per operation, named after its verb. Unknown members are refused by the decoder.

`None` for an optional member means absent. A *selector* is at most one of `global_indexes`, `keys`, `group_ids` and
`key_prefix`.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, json

from .members import (
    Ack,
    CellColumnsIn,
    Compact,
    Count,
    Cursor,
    CustomMetaMode,
    Expand,
    ExpectedSamples,
    GroupColumnIn,
    KeyPrefix,
    Kind,
    MaxAttempts,
    MaxSamples,
    MetaColumnIn,
    NamedFields,
    NamePrefix,
    PageRows,
    PageSize,
    PartitionPrefix,
    Ragged,
    ShareColumns,
    Token,
    Wait,
)
from .types import (
    MAX_ROWS,
    CheckpointName,
    Dtype,
    FieldName,
    FieldNames,
    GroupList,
    Index,
    Indexes,
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
Included = Annotated[
    list[Include],
    Meta(
        description="parts of the batch meta; left out: field_schema, custom_meta, backend_meta, and keys if any row "
        "has one"
    ),
]
MAX_CONDITIONS = 32
MAX_PATH = 32
MAX_VALUES = 1024


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

    path: Annotated[Path, Meta(description="where in custom meta: dotted, or an array of members")]
    op: Annotated[
        Literal["==", "!=", "<", "<=", ">", ">=", "in", "prefix", "exists"], Meta(description="how it is compared")
    ]
    value: Annotated[
        Scalar | Annotated[list[Scalar], Meta(max_length=MAX_VALUES)] | None,
        Meta(description="what it is compared with: an array for `in`, true (or left out) or false for `exists`"),
    ] = None


Where = Annotated[
    list[Condition], Meta(max_length=MAX_CONDITIONS, description="all of these must hold, over custom meta")
]


class FieldSchema(Request, frozen=True):
    """One field's schema as a writer gives it (contract#field-schema); at most one of shape, shapes and lengths."""

    kind: Kind | None = None
    dtype: Annotated[Dtype, Meta(description="torch's name of the dtype, for a tensor")] | None = None
    ragged: Ragged | None = None
    shape: Annotated[Shape, Meta(description="the shape that all rows have; [] is a scalar")] | None = None
    shapes: Annotated[Shapes, Meta(description="a shape per row, or {const}: the field is ragged")] | None = None
    lengths: Annotated[Lengths, Meta(description="as shapes, for rank 1: a length per row, or {const}")] | None = None


class FieldDeclaration(Request, frozen=True):
    """One field's schema as a partition declares it: no per-sample shapes, and `shape` may be left out."""

    kind: Kind | None = None
    dtype: Annotated[Dtype, Meta(description="torch's name of the dtype, for a tensor")] | None = None
    ragged: Ragged | None = None
    shape: Annotated[Shape, Meta(description="the shape; left out: known with the first write")] | None = None


class PutPartition(Request, frozen=True):
    """Settings of a partition. `{}` gives none."""

    expected_samples: ExpectedSamples | None = None
    max_samples: MaxSamples | None = None
    max_attempts: MaxAttempts | None = None
    fields: Annotated[dict[FieldName, FieldDeclaration], Meta(description="fields declared, by name")] | None = None


class PatchPartition(Request, frozen=True):
    """What to change of a partition's settings; what is left out stays."""

    expected_samples: ExpectedSamples | None = None
    max_samples: MaxSamples | None = None
    max_attempts: MaxAttempts | None = None


class Insert(Request, frozen=True):
    """New rows: `count` of them, or one per key. A key that exists keeps its index.

    With `ttl_s`, those that get no field in time disappear. The reply describes the rows, as a read does.
    """

    count: Annotated[Rows, Meta(description="so many new rows, without keys")] | None = None
    keys: Annotated[Keys, Meta(description="a row per key; one that exists keeps its index")] | None = None
    group_ids: GroupColumnIn | None = None
    custom_meta: MetaColumnIn | None = None
    custom_meta_mode: CustomMetaMode | None = None
    ttl_s: TtlSeconds | None = None
    include: Included | None = None
    expand: Expand | None = None
    compact: Compact | None = None
    share_columns: ShareColumns | None = None


class Produce(Request, frozen=True):
    """The data of these fields is in the storage backend, for these rows."""

    field_schema: Annotated[
        dict[FieldName, FieldSchema],
        Meta(description="the fields written, by name; {} writes rows that have only meta"),
    ]
    global_indexes: Indexes | None = None
    keys: Keys | None = None
    create: Annotated[bool, Meta(description="true: keys that are not there are made, and the partition")] | None = None
    backend_meta: CellColumnsIn | None = None
    custom_meta: MetaColumnIn | None = None
    custom_meta_mode: CustomMetaMode | None = None
    group_ids: GroupColumnIn | None = None
    on_cleared: (
        Annotated[Literal["refuse", "skip"], Meta(description="cleared rows: refuse the call, or leave them out")]
        | None
    ) = None


class Revoke(Request, frozen=True):
    """The storage backend lost the bytes of these fields of the selected rows; the selector is required."""

    fields: Annotated[
        list[FieldName], Meta(min_length=1, max_length=MAX_ROWS, description="fields whose bytes are lost")
    ]
    global_indexes: Indexes | None = None
    keys: Keys | None = None
    group_ids: GroupList | None = None
    key_prefix: KeyPrefix | None = None


class PatchCustomMeta(Request, frozen=True):
    """A patch per row, by RFC 7396 unless `custom_meta_mode` says `update`; `null` leaves a row alone."""

    custom_meta: MetaColumnIn
    custom_meta_mode: CustomMetaMode | None = None
    global_indexes: Indexes | None = None
    keys: Keys | None = None
    if_revision: Annotated[Count, Meta(description="only if none of the rows changed after it")] | None = None
    ttl_s: TtlSeconds | None = None


class PatchBackendMeta(Request, frozen=True):
    """The storage backend moved bytes: new cells for rows that exist."""

    backend_meta: CellColumnsIn
    global_indexes: Indexes | None = None
    keys: Keys | None = None


class Read(Request, frozen=True):
    """Batch meta of the selected rows (absent selector: all, in index order). Consumes nothing."""

    fields: FieldNames | None = None
    global_indexes: Indexes | None = None
    keys: Keys | None = None
    group_ids: GroupList | None = None
    key_prefix: KeyPrefix | None = None
    include: Included | None = None
    expand: Expand | None = None
    compact: Compact | None = None
    share_columns: ShareColumns | None = None
    strict: Annotated[bool, Meta(description="true: 404 for any key, index or field that is missing")] | None = None
    limit: PageRows | None = None
    cursor: Cursor | None = None


class ReadBackendMeta(Request, frozen=True):
    """Where the bytes of the selected cells lie."""

    fields: FieldNames | None = None
    global_indexes: Indexes | None = None
    keys: Keys | None = None
    group_ids: GroupList | None = None
    key_prefix: KeyPrefix | None = None
    expand: Expand | None = None
    limit: PageRows | None = None
    cursor: Cursor | None = None


class LookupKeys(Request, frozen=True):
    """The keys of these indexes."""

    global_indexes: Indexes


class DeleteSamples(Request, frozen=True):
    """Rows to remove at once; the selector is required."""

    global_indexes: Indexes | None = None
    keys: Keys | None = None
    group_ids: GroupList | None = None
    key_prefix: KeyPrefix | None = None
    where: Where | None = None


class PlanClear(Request, frozen=True):
    """Rows to hide until the clear is committed or aborted: a selector, or `all`."""

    global_indexes: Indexes | None = None
    keys: Keys | None = None
    group_ids: GroupList | None = None
    key_prefix: KeyPrefix | None = None
    all: Annotated[bool, Meta(description="true: all rows, instead of a selector")] | None = None
    where: Where | None = None
    tombstone: Annotated[bool, Meta(description="true: once committed, these keys are never created again")] | None = (
        None
    )
    expand: Expand | None = None


class Sampler(Request, frozen=True):
    """Which rows to take: a sampler's name with its arguments beside it (contract#samplers)."""

    name: Annotated[str, Meta(min_length=1, max_length=200, description="name of the sampler")]
    n_samples_per_prompt: Annotated[Rows, Meta(description="rows of a whole group")] | None = None
    group_by: (
        Annotated[Literal["group_id", "position"], Meta(description="what makes a group; group_id if left out")] | None
    ) = None
    dp_rank: Annotated[Index, Meta(description="the data-parallel rank that asks")] | None = None
    batch_index: Annotated[Index, Meta(description="the number of its batch")] | None = None
    dp_size: Annotated[Rows, Meta(description="how many ranks there are")] | None = None
    weight: (
        Annotated[Path, Meta(description="path to a number in custom meta: dotted, or an array of members")] | None
    ) = None
    weight_default: (
        Annotated[
            int | float, Meta(description="the weight of a row that has no number there; left out: it is not eligible")
        ]
        | None
    ) = None
    budget: Annotated[float, Meta(gt=0, description="what the weights of a batch may sum up to")] | None = None
    seed: Annotated[Count, Meta(description="another seed, another shuffle; 0 if left out")] | None = None


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

    fields: Annotated[list[FieldName], Meta(min_length=1, max_length=MAX_ROWS, description="all of these are produced")]
    batch_size: Annotated[Rows, Meta(description="rows wanted, and the most that are handed out")]
    min_batch_size: Annotated[Rows, Meta(description="rows that are enough once the time is up")] | None = None
    wait_s: Wait | None = None
    sampler: SamplerArguments | None = None
    include: Included | None = None
    expand: Expand | None = None
    compact: Compact | None = None
    share_columns: ShareColumns | None = None
    where: Where | None = None
    ack: Ack | None = None
    lease_s: LeaseSeconds | None = None
    worker: Annotated[Name, Meta(description="who asks: its leases may be released by this name")] | None = None


class Rejected(Request, frozen=True):
    """A row that the task must not get again, and why."""

    global_index: Index
    reason: Annotated[str, Meta(min_length=1, max_length=1000, description="why, for people")]


class AckClaim(Request, frozen=True):
    """What became of a claim's rows. Nothing named: all are accepted. `all`: those open and not named elsewhere.

    A release takes back the attempt that the hand-out was, unless it `counts`.
    """

    token: Token
    accept: Annotated[
        Indexes | Literal["all"] | None,
        Meta(description="rows that are consumed now; `all`: open and not named elsewhere"),
    ] = None
    release: Annotated[Indexes, Meta(description="rows that go out again")] | None = None
    reject: (
        Annotated[list[Rejected], Meta(max_length=MAX_ROWS, description="rows that are dead now, and why")] | None
    ) = None
    counts: Annotated[bool, Meta(description="true: a release counts as an attempt")] | None = None


class ExtendClaim(Request, frozen=True):
    """The lease ends `lease_s` from now."""

    token: Token
    lease_s: LeaseSeconds


class Empty(Request, frozen=True):
    """A body without members."""


class ListPartitions(Request, frozen=True):
    prefix: NamePrefix | None = None
    limit: PageSize | None = None
    cursor: Cursor | None = None


class PartitionQuery(Request, frozen=True):
    """`wait_s` only with `revision`: wait until the partition is past it."""

    revision: Annotated[Count, Meta(description="wait until the partition is past it")] | None = None
    wait_s: Wait | None = None


class ReadQuery(Request, frozen=True):
    """Batch meta of all rows, as a GET."""

    fields: NamedFields | None = None
    include: Annotated[str, Meta(description="parts of the batch meta, separated by commas")] | None = None
    expand: Expand | None = None
    compact: Compact | None = None
    share_columns: ShareColumns | None = None
    limit: PageRows | None = None
    cursor: Cursor | None = None


class BackendMetaQuery(Request, frozen=True):
    fields: NamedFields | None = None
    global_indexes: Annotated[str, Meta(description="indexes, separated by commas; left out: all rows")] | None = None
    expand: Expand | None = None
    limit: PageRows | None = None
    cursor: Cursor | None = None


class ProductionQuery(Request, frozen=True):
    fields: Annotated[str, Meta(description="names of fields, separated by commas")]
    limit: PageSize | None = None
    cursor: Cursor | None = None


class ListClaims(Request, frozen=True):
    """Open claims, of one partition, task or worker where named, or of partitions with a prefix."""

    partition_id: Annotated[Name, Meta(description="only those of this partition")] | None = None
    task: Annotated[Name, Meta(description="only those of this task")] | None = None
    worker: Annotated[Name, Meta(description="only those of this worker")] | None = None
    prefix: PartitionPrefix | None = None


class ListClears(Request, frozen=True):
    """Clears in the order planned, of one state where named, or of partitions with a prefix."""

    state: (
        Annotated[Literal["pending", "committed", "aborted"], Meta(description="only those in this state")] | None
    ) = None
    prefix: PartitionPrefix | None = None
    limit: PageSize | None = None
    cursor: Cursor | None = None


class ClearQuery(Request, frozen=True):
    expand: Expand | None = None


class CreateCheckpoint(Request, frozen=True):
    name: Annotated[CheckpointName, Meta(description="chosen once: A-Z, a-z, 0-9, and from the second on . _ -")]


class RestoreCheckpoint(Request, frozen=True):
    """`revived`: what becomes of rows whose bytes may be gone; `unproduced`: none of their fields is ready."""

    revived: (
        Annotated[
            Literal["as_is", "unproduced"], Meta(description="rows whose bytes may be gone: as they were, or not ready")
        ]
        | None
    ) = None


class ListKeys(Request, frozen=True):
    """`since_revision`: only what changed after it, in revision order; `wait_s` only with it: until something did.

    `where` is the JSON of a list of conditions.
    """

    prefix: Annotated[str, Meta(description="only keys that begin so")] | None = None
    limit: PageSize | None = None
    cursor: Cursor | None = None
    since_revision: Annotated[Count, Meta(description="only what changed after it; 0: all there is")] | None = None
    wait_s: Wait | None = None
    where: Annotated[str, Meta(max_length=1_048_576, description="JSON: an array of conditions")] | None = None


class ConsumptionQuery(Request, frozen=True):
    counts_only: Annotated[bool, Meta(description="true: leave the rows out")] | None = None
    limit: PageSize | None = None
    cursor: Cursor | None = None
