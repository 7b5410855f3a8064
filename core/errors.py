"""Why a call is refused, as one tree. A docstring is the default detail; `code` the stable name (contract#errors).

Refused                       nothing changed; the caller can do something about it
├── Invalid                   DuplicateKeys, DuplicateIndexes, IdempotencyMismatch
├── NotFound                  PartitionNotFound, SampleNotFound, KeyNotFound, FieldNotFound, ClaimNotFound,
│                             ClearNotFound, CheckpointNotFound
├── Conflict                  PartitionConflict, PartitionSealed, DtypeConflict, KindConflict, GroupConflict,
│                             SampleClearing, LeaseLost, ClearClosed, IdempotencyInFlight, EpochMismatch,
│                             CheckpointExists, CheckpointCorrupt
├── Gone                      PartitionCleared, SampleCleared, Compacted
├── PreconditionFailed
├── TooMany                   TooManySamples, TooManyWaiting
├── Unavailable               NotReady, Overloaded, JournalUnavailable
└── EdgeRefused               what only HTTP knows of (app/errors.py)
"""

from collections.abc import Sequence
from typing import ClassVar

Location = tuple[str, str]


class Refused(Exception):
    """The call was refused.

    `is_final`: the same call can never succeed, though others of its code may later. `reason`: what is waited for, of a
    service that is not ready.
    """

    code: ClassVar[str] = "invalid-request"

    def __init__(
        self,
        detail: str | None = None,
        *,
        errors: Sequence[Location] = (),
        global_indexes: Sequence[int] = (),
        keys: Sequence[str] = (),
        fields: Sequence[str] = (),
        is_final: bool = False,
        reason: str | None = None,
    ) -> None:
        self.detail = detail or (type(self).__doc__ or "")
        self.errors = errors
        self.global_indexes = global_indexes
        self.keys = keys
        self.fields = fields
        self.is_final = is_final
        self.reason = reason
        super().__init__(self.detail)


class Invalid(Refused):
    """The request is not valid: see errors."""

    @classmethod
    def at(cls, loc: str, msg: str) -> "Invalid":
        """One member is wrong: `loc` says where, `msg` what to change."""
        return cls(f"{loc}: {msg}", errors=[(loc, msg)])


class DuplicateKeys(Refused):
    """A key stands twice in this call: name each row once."""

    code = "duplicate-keys"


class DuplicateIndexes(Refused):
    """An index stands twice in this call: name each row once."""

    code = "duplicate-indexes"


class IdempotencyMismatch(Invalid):
    """The Idempotency-Key was sent with another request: send that one again as it was, or use a new key."""

    code = "idempotency-mismatch"


class NotFound(Refused):
    """There is no such thing."""


class PartitionNotFound(NotFound):
    """There never was a partition of this name: make it with PUT or insert."""

    code = "partition-not-found"


class SampleNotFound(NotFound):
    """Such an index was not given out yet: insert first and use the indexes of its reply."""

    code = "sample-not-found"


class KeyNotFound(NotFound):
    """The partition has no sample of this key: insert it, or produce with create: true."""

    code = "key-not-found"


class FieldNotFound(NotFound):
    """The partition does not know this field: produce it or declare it first."""

    code = "field-not-found"


class ClaimNotFound(NotFound):
    """There is no such claim: it never was, took without a lease, or was closed long ago."""

    code = "claim-not-found"


class ClearNotFound(NotFound):
    """There is no such clear: it never was, or was closed long ago."""

    code = "clear-not-found"


class CheckpointNotFound(NotFound):
    """There is no checkpoint of this name: GET /v1/checkpoints lists them."""

    code = "checkpoint-not-found"


class Conflict(Refused):
    """The call contradicts what is there."""


class PartitionConflict(Conflict):
    """The partition exists with other settings: leave it, or delete it first."""

    code = "partition-conflict"


class PartitionSealed(Conflict):
    """The partition is sealed and takes no more samples: write to another one."""

    code = "partition-sealed"


class DtypeConflict(Conflict):
    """The field has another dtype or rank: write it as it is, or use another field name."""

    code = "dtype-conflict"


class KindConflict(Conflict):
    """The field is a tensor in one place and an object in the other: use another field name."""

    code = "kind-conflict"


class GroupConflict(Conflict):
    """A sample's group is set once: leave its group_id out, or give the one it has."""

    code = "group-conflict"


class SampleClearing(Conflict):
    """The sample is being cleared: send the call again once that clear is committed or aborted."""

    code = "sample-clearing"


class LeaseLost(Conflict):
    """The lease on these samples has ended: drop what you did with them, others may have them now."""

    code = "lease-lost"


class ClearClosed(Conflict):
    """The clear was committed or aborted before: what is gone does not come back, what is back needs a new clear."""

    code = "clear-closed"


class IdempotencyInFlight(Conflict):
    """A call with this Idempotency-Key is on its way, or has taken this one's place: send it again for its reply."""

    code = "idempotency-in-flight"


class EpochMismatch(Conflict):
    """The state went back to a checkpoint since you began: drop what you hold, look at X-Epoch, and begin anew."""

    code = "epoch-mismatch"


class CheckpointExists(Conflict):
    """There is a checkpoint of this name already, and it stays as it is: choose another name."""

    code = "checkpoint-exists"


class CheckpointCorrupt(Conflict):
    """The checkpoint's file is damaged or of something else, and nothing was changed: restore another one."""

    code = "checkpoint-corrupt"


class Gone(Refused):
    """It was there and is not coming back."""


class PartitionCleared(Gone):
    """The partition was deleted: make it anew with PUT or insert."""

    code = "partition-cleared"


class SampleCleared(Gone):
    """The sample was cleared, or is in another partition: drop it, its index is never used again."""

    code = "sample-cleared"


class Compacted(Gone):
    """What happened after that revision is not known any more: list all keys anew (since_revision=0), and go on."""

    code = "compacted"


class PreconditionFailed(Refused):
    """It has changed since: read it again and decide anew."""

    code = "precondition-failed"


class TooMany(Refused):
    """More than may be there at once."""


class TooManySamples(TooMany):
    """The partition would hold more than its max_samples: delete some, or wait until they are.

    Not retryable where the call alone has more than that: send fewer at a time.
    """

    code = "too-many-samples"


class TooManyWaiting(TooMany):
    """Too many of your calls are waiting: let some end first."""

    code = "too-many-waiting"


class Unavailable(Refused):
    """The service cannot answer now: send the call again later."""


class NotReady(Unavailable):
    """The service is starting or stopping: send the call again."""

    code = "not-ready"

    @classmethod
    def because(cls, reason: str) -> "NotReady":
        """The journal is being replayed, or the service stops."""
        return cls(f"the service is not ready ({reason}): send the call again", reason=reason)


class Overloaded(Unavailable):
    """Too many calls are queued: send the call again later."""

    code = "overloaded"


class JournalUnavailable(Unavailable):
    """The journal cannot be written; whether the change was made is unknown: send the call again after a restart."""

    code = "journal-unavailable"
