"""Types of members that recur in requests and replies, each with its description for the OpenAPI.

A member that occurs once has its description beside it. A test fails for one without.
"""

from typing import Annotated, Literal

from msgspec import Meta

from .types import INT64_MAX, BitArray, BitColumn, CellColumn, Cells, FieldName, GroupIds, Key, SharedCellColumn

# Requests: which rows, what of them, which page.
Wait = Annotated[float, Meta(ge=0, le=60, description="seconds this call may wait for data")]
PageSize = Annotated[int, Meta(ge=1, le=10_000, description="rows or lines of one page; 1,000 if left out")]
Cursor = Annotated[str, Meta(min_length=1, max_length=200, description="the `next_cursor` of the page before")]
Count = Annotated[int, Meta(ge=0, le=INT64_MAX, description="a whole number, 0 or more")]
Expand = Annotated[bool, Meta(description="true: columns of the reply are arrays, never {const}")]
Compact = Annotated[bool, Meta(description="true: ragged fields of rank 1 have `lengths` instead of `shapes`")]
ShareColumns = Annotated[
    bool, Meta(description="true: a column that equals that of an earlier field is {same_as: field}")
]
PageRows = Annotated[int, Meta(ge=1, le=65_536, description="rows of one page; 65,536 if left out")]
KeyPrefix = Annotated[Key, Meta(description="rows whose key begins so, in index order")]
NamePrefix = Annotated[str, Meta(max_length=200, description="only those whose name begins so")]
PartitionPrefix = Annotated[str, Meta(max_length=200, description="only those of partitions whose name begins so")]
NamedFields = Annotated[str, Meta(description="names of fields, separated by commas; left out: all known now")]
GroupColumnIn = Annotated[
    GroupIds, Meta(description="a group id or null per row, or {const}; a row's group is set once")
]
MetaColumnIn = Annotated[
    Cells, Meta(description="an object per row, a patch of what is there (null: leave alone), or {const}")
]
CustomMetaMode = Annotated[
    Literal["merge", "update"],
    Meta(
        description="how custom_meta is applied: `merge` (if left out) by RFC 7396, `update` as Python's dict.update: "
        "members are replaced whole, and null is a value"
    ),
]
CellColumnsIn = Annotated[
    dict[FieldName, Cells], Meta(description="by field: a JSON value per row, where and how its bytes lie, or {const}")
]

# Settings of a partition.
ExpectedSamples = Annotated[Count, Meta(description="samples that are to come in all; `done` waits for them")]
MaxSamples = Annotated[Count, Meta(description="samples that may be there at once; a write beyond is refused")]
MaxAttempts = Annotated[
    int, Meta(ge=1, le=2**31 - 1, description="hand-outs without an accept until a sample is dead; 5 if left out")
]

# A field's schema.
Kind = Annotated[Literal["tensor", "object"], Meta(description="`tensor` unless said; `object` is no tensor")]
Ragged = Annotated[bool, Meta(description="true: shapes may differ from row to row")]
DtypeOut = Annotated[str, Meta(description="torch's name of the dtype")]
ShapeOut = Annotated[list[int], Meta(description="the shape that all rows have; null while it is not known")]

# Claims and leases.
Ack = Annotated[
    Literal["on_dispatch", "explicit"],
    Meta(description="when rows count as consumed: `on_dispatch` at once, `explicit` once the lease accepts them"),
]
Token = Annotated[str, Meta(min_length=1, max_length=200, description="proves the lease, as the claim gave it")]
ClaimId = Annotated[str, Meta(description="id of the claim")]
TaskName = Annotated[str, Meta(description="name of the task")]
WorkerName = Annotated[str, Meta(description="name that the worker gave, or null")]
StillOpen = Annotated[int, Meta(description="rows that the lease still holds")]
Attempt = Annotated[int, Meta(description="the highest number of hand-outs of its rows")]
ExpiresIn = Annotated[float, Meta(description="seconds until the lease ends")]
Age = Annotated[float, Meta(description="seconds since it was made")]

# Replies about a partition.
PartitionId = Annotated[str, Meta(description="name of the partition")]
CreatedAt = Annotated[str, Meta(description="when it was made: RFC 3339, UTC")]
NumSamples = Annotated[int, Meta(description="samples there now, those being cleared left out")]
NumFields = Annotated[int, Meta(description="fields known now")]
NextCursor = Annotated[str, Meta(description="give it as `cursor` for the next page; null on the last one")]
Cleared = Annotated[int, Meta(description="samples that are gone now")]
SkippedClearing = Annotated[list[int], Meta(description="indexes left alone, since another clear has them")]
MissingKeys = Annotated[list[str], Meta(description="keys named that the partition does not have")]
MissingFields = Annotated[list[str], Meta(description="fields named that the partition does not know")]
CellColumns = Annotated[
    dict[str, CellColumn], Meta(description="by field: a JSON value per row, where and how its bytes lie, or {const}")
]
SharedCellColumns = Annotated[
    dict[str, SharedCellColumn],
    Meta(description="by field: a JSON value per row, where and how its bytes lie, or {const}, or {same_as: field}"),
]
BitColumns = Annotated[dict[str, BitColumn], Meta(description="by field: 1 where the cell is produced, or {const}")]
Skipped = Annotated[list[int | str], Meta(description="cleared rows that were left out, as the caller named them")]
Removed = Annotated[list[str], Meta(description="keys that were listed since that revision and are not any more")]
FieldNamesOut = Annotated[list[str], Meta(description="the known ones of the fields asked for, in that order")]

# A task's account.
Consumed = Annotated[int, Meta(description="rows consumed since the last reset, cleared ones included")]
LeasedNow = Annotated[int, Meta(description="live rows that a lease holds, or that are set aside for a rank")]
DeadNow = Annotated[int, Meta(description="live rows that the task will not get again")]
Total = Annotated[int, Meta(description="live rows, those consumed and cleared since, and those still expected")]
ConsumptionStatus = Annotated[BitArray, Meta(description="1 where the task has consumed the row")]
Done = Annotated[bool, Meta(description="true: no more rows are to come, and all are consumed or dead")]
Ready = Annotated[int, Meta(description="rows the task could take now, before groups")]
Wanted = Annotated[int, Meta(description="rows asked for")]

# Clears.
ClearId = Annotated[str, Meta(description="id of the clear")]
ClearCount = Annotated[int, Meta(description="samples that the clear has, or had")]
