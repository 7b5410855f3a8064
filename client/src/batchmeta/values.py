"""The answers that hold columns, as typed values. Those that hold none are the Structs of `wire.replies` themselves."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .batch import BatchMeta
from .columns import Column
from .wire import replies


@dataclass(frozen=True, slots=True)
class Produced:
    """`global_indexes`: of the rows written, in the caller's order. `created`: how many of them are new.

    `skipped`: rows left out because they were cleared, as the call named them (`on_cleared="skip"`).
    """

    partition_id: str
    revision: int
    global_indexes: list[int]
    created: int
    skipped: tuple[int | str, ...] = ()


@dataclass(frozen=True, slots=True)
class PatchedBackendMeta:
    """`global_indexes`: of the rows whose cells were set, in the caller's order."""

    partition_id: str
    revision: int
    global_indexes: list[int]


@dataclass(frozen=True, slots=True)
class BackendMeta:
    """Per field one JSON value per row, in the order of `global_indexes`; None where nothing is recorded."""

    partition_id: str
    revision: int
    global_indexes: Column[int]
    backend_meta: Mapping[str, Column[Any]]
    missing_keys: tuple[str, ...]
    missing_fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProductionStatus:
    """`production_status[i][j]`: 1 if field `fields[j]` is produced for row `global_indexes[i]`, else 0."""

    partition_id: str
    revision: int
    global_indexes: list[int]
    fields: list[str]
    production_status: list[list[int]]


@dataclass(frozen=True, slots=True)
class KeyLine:
    """One keyed row and its custom meta, as of `revision`: that of the row's own last change."""

    key: str
    global_index: int
    custom_meta: dict[str, Any]
    revision: int


@dataclass(frozen=True, slots=True)
class KeyChanges:
    """What changed of a partition's keys: rows that are listed, in the order of their changes, and keys that left.

    `revision`: all up to it is told, go on from there. No key is in both.
    """

    partition_id: str
    revision: int
    keys: list[KeyLine]
    removed: list[str]


@dataclass(frozen=True, slots=True)
class Consumption:
    """How far a task is. `consumption_status[i]` is 0 or 1 for row `global_indexes[i]`; both None with `counts_only`.

    `consumed` counts since the last reset, cleared rows included; `total` is what there is to consume in all.
    """

    partition_id: str
    revision: int
    consumed: int
    leased: int
    dead: int
    total: int
    done: bool
    global_indexes: list[int] | None
    consumption_status: list[int] | None


@dataclass(frozen=True, slots=True)
class Claim:
    """A batch handed out, or why there is none. True in a condition when a batch was handed out.

    Not handed out: `claim_id` is None, `batch` is empty, `ready` is how many rows the task could take now, `wanted`
    how many it asked for, `done` that no more will come, `blocking` what holds the other rows back. `stranded`, with
    `done`: rows are left that this claim's sampler and `where` could never hand out; so many.
    Handed out: `ready` and `wanted` are None, `done` is False (nobody asked), `blocking` is empty. With a lease:
    `token` for `ack` and `extend`, `attempts` how often each row was handed out, `expires_in_s` seconds.
    """

    partition_id: str
    revision: int
    claim_id: str | None
    batch: BatchMeta
    ready: int | None = None
    wanted: int | None = None
    done: bool = False
    blocking: tuple[replies.Blocking, ...] = ()
    token: str | None = None
    attempts: Column[int] | None = None
    expires_in_s: float | None = None
    stranded: int = 0

    def __bool__(self) -> bool:
        return self.claim_id is not None


@dataclass(frozen=True, slots=True)
class ClearField:
    """Per row of a clear: 1 if the field was ever written, and where its bytes lie (None: nothing recorded)."""

    written: Column[int]
    backend_meta: Column[Any]


@dataclass(frozen=True, slots=True)
class Clear:
    """A clear. While it is pending, the rows it takes away: keys and fields are columns in the order of the indexes.

    `count`: rows in all. `skipped_clearing`: rows that were named, and that another clear has.
    """

    clear_id: str
    partition_id: str
    revision: int
    state: replies.ClearState
    count: int
    global_indexes: list[int]
    keys: Column[str | None]
    fields: Mapping[str, ClearField]
    skipped_clearing: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Tagged:
    """A partition with the ETag of this state of it, for `delete_partition(if_match=…)`."""

    partition: replies.Partition
    etag: str
