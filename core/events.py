"""Events: the changes of the state, as the journal stores them. An event holds outcomes and never a request, so that
replay needs no clock, no sampler and no randomness.

Arrays travel as bytes: global indexes int64, sizes int32, little-endian. Cells are JSON bytes; one `bytes` stands for
the same cell in every row. The order of members is the format: append new ones at the end, with a default.
"""

from msgspec import Struct


class Event(Struct, array_like=True, frozen=True, tag=True):
    """Base of all events; each belongs to one partition."""

    partition: str


class Declared(Struct, array_like=True, frozen=True):
    """A field's declaration in a partition's settings."""

    name: str
    kind: str
    dtype: str | None
    ragged: bool
    shape: tuple[int, ...] | None


class Settings(Struct, array_like=True, frozen=True):
    """A partition's settings as its PUT gave them, defaults filled in."""

    expected_samples: int | None
    max_samples: int | None
    max_attempts: int
    fields: tuple[Declared, ...]


class Limits(Struct, array_like=True, frozen=True):
    """The settings of a partition that PATCH and seal may change after its PUT."""

    expected_samples: int | None
    max_samples: int | None
    max_attempts: int


class PartitionMade(Event, frozen=True):
    created_at: float


class PartitionSet(Event, frozen=True):
    settings: Settings


class PartitionDeleted(Event, frozen=True):
    pass


class Inserted(Event, frozen=True):
    """Rows first … first+count-1 are new; `keys` are JSON strings."""

    first: int
    count: int
    keys: list[bytes] | None


class Grouped(Event, frozen=True):
    """These rows belong to these groups; ids are JSON values."""

    indexes: bytes
    group_ids: list[bytes]


class Produced(Event, frozen=True):
    """`signature`: the fields (core.state.cells.signatures); `sizes` int32 [rows or 1, its tensors' sizes].

    `backend`: per field a cell for all rows, or one each.
    """

    indexes: bytes
    signature: bytes
    sizes: bytes
    backend: list[bytes | list[bytes]]


class CustomMetaSet(Event, frozen=True):
    """The patched result, not the patch."""

    indexes: bytes
    cells: list[bytes]


class BackendMetaSet(Event, frozen=True):
    indexes: bytes
    cells: dict[str, bytes | list[bytes]]


class Cleared(Event, frozen=True):
    indexes: bytes


class Consumed(Event, frozen=True):
    """`share`: of the task's sampler memory, 0: none."""

    task: str
    indexes: bytes
    share: int = 0


class Reset(Event, frozen=True):
    """One task forgets everything that it consumed, leased or found dead."""

    task: str


class Limited(Event, frozen=True):
    limits: Limits


class Sealed(Event, frozen=True):
    """The partition takes no more samples, and expects this many."""

    samples: int


class Leased(Event, frozen=True):
    """Rows are handed out for `length_s` seconds; `number` is the claim's. `group_size`: rows that settle together.

    `share`: of the task's sampler memory, 0: none.
    """

    task: str
    indexes: bytes
    number: int
    token: str
    worker: str | None
    length_s: float
    group_size: int
    share: int = 0


class Settled(Event, frozen=True):
    """Rows of a lease: accepted, free again, or dead for `reasons`, one each; `worn`: those handed out too often.

    `is_lost`: the lease ended by itself (in old journals; now LeasesEnded says so). `takes_back`: the hand-out of the
    released rows does not count as an attempt.
    """

    number: int
    accepted: bytes
    released: bytes
    dead: bytes
    reasons: list[str]
    worn: bytes
    is_lost: bool = False
    takes_back: bool = False


class LeasesEnded(Event, frozen=True):
    """Leases of a task ended by themselves: their time is up, or their worker died. `numbers` int64.

    Their open rows are free again; `worn`: those that were handed out too often are dead, for this `reason`.
    """

    task: str
    numbers: bytes
    released: bytes
    worn: bytes
    reason: str


class Extended(Event, frozen=True):
    """The lease ends `length_s` seconds from now."""

    number: int
    length_s: float


class ClearPlanned(Event, frozen=True):
    """These live rows are clearing until this clear is committed or aborted. `planned_at`: Unix seconds."""

    number: int
    indexes: bytes
    with_tombstones: bool
    planned_at: float


class ClearCommitted(Event, frozen=True):
    number: int


class ClearAborted(Event, frozen=True):
    number: int


class Revoked(Event, frozen=True):
    """The bytes of these fields of these rows are lost: the cells are not ready any more. All else stays."""

    indexes: bytes
    fields: list[str]


class Timed(Event, frozen=True):
    """These rows disappear in `length_s` seconds, unless one of their fields is produced by then."""

    indexes: bytes
    length_s: float


class Expired(Event, frozen=True):
    """The time limit of these rows has passed: they are removed, and count as never inserted."""

    indexes: bytes


class ShareTerms(Struct, array_like=True, frozen=True):
    """What all claims of one key of sampler memory have in common; `sampler`: its other arguments, as JSON."""

    fields: tuple[str, ...]
    batch_size: int
    ack: str
    sampler: bytes


class Allotted(Event, frozen=True):
    """Rows are set aside for a key of a task's sampler memory; `shares`: their indexes, rank after rank."""

    task: str
    key: str
    terms: ShareTerms
    shares: list[bytes]


class Begun(Event, frozen=True):
    """The history has a name from now on, by which its checkpoints are recognised. Of no partition."""

    history: str


class Restored(Event, frozen=True):
    """The state is replaced by an image; counters only ever rise (core/apply/restore.py). Of no partition.

    `releases`: all rows leased in the image are free. (Restores of old journals kept leases.)
    """

    image: bytes
    releases: bool = False


AnyEvent = (
    PartitionMade
    | PartitionSet
    | PartitionDeleted
    | Inserted
    | Grouped
    | Produced
    | CustomMetaSet
    | BackendMetaSet
    | Cleared
    | Consumed
    | Reset
    | Limited
    | Sealed
    | Leased
    | Settled
    | LeasesEnded
    | Extended
    | ClearPlanned
    | ClearCommitted
    | ClearAborted
    | Revoked
    | Timed
    | Expired
    | Allotted
    | Begun
    | Restored
)


class Kept(Struct, array_like=True, frozen=True, gc=False):
    """The reply to a call with a key, for repeated requests. `digest` tells whether a request is the same."""

    key: str
    digest: bytes
    status: int
    body: bytes
    etag: str | None


class Change(Struct, array_like=True, frozen=True):
    """All events of one call, applied together; the service's revision after them; its reply, where that is kept.

    A call that changed nothing and whose reply is kept has no events, and the revision stays.
    """

    revision: int
    events: list[AnyEvent]
    kept: Kept | None = None
