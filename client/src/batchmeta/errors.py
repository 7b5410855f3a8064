"""What a call may raise. Nothing here knows how a call is sent.

BatchmetaError
├── Problem           the service refused the call; one subclass per code of the contract (wire/problems.py)
├── ConnectionLost    no answer came, or a gateway's: whether the call took effect is unknown
└── UnreadableReply   an answer came that the contract does not know
"""

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import UNSET

from .wire import replies

__all__ = [
    "BY_CODE",
    "BadRequest",
    "BatchmetaError",
    "BodyTooLarge",
    "CheckpointCorrupt",
    "CheckpointExists",
    "CheckpointNotFound",
    "ClaimNotFound",
    "ClearClosed",
    "ClearNotFound",
    "Compacted",
    "ConnectionLost",
    "DtypeConflict",
    "DuplicateIndexes",
    "DuplicateKeys",
    "EpochMismatch",
    "FieldNotFound",
    "Forbidden",
    "GroupConflict",
    "IdempotencyInFlight",
    "IdempotencyMismatch",
    "Internal",
    "InvalidRequest",
    "JournalUnavailable",
    "KeyNotFound",
    "KindConflict",
    "LeaseLost",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotReady",
    "Overloaded",
    "PartitionCleared",
    "PartitionConflict",
    "PartitionNotFound",
    "PartitionSealed",
    "PreconditionFailed",
    "Problem",
    "RouteNotFound",
    "SampleCleared",
    "SampleClearing",
    "SampleNotFound",
    "TooManySamples",
    "TooManyWaiting",
    "UnreadableReply",
    "UnsupportedMediaType",
]


class BatchmetaError(Exception):
    """Base of all that this client raises on its own account; wrong arguments are plain ValueError or TypeError."""


class ConnectionLost(BatchmetaError, ConnectionError):
    """No answer of the service: refused, broken off, timed out, or a gateway answered in its place.

    Unless it was refused, the change may or may not have been made. `status` and `retry_after_s` are the gateway's.
    `after_s`: how many seconds after the last sending it was lost.
    """

    def __init__(self, text: str = "", *, status: int | None = None, retry_after_s: float | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.retry_after_s = retry_after_s
        self.after_s = 0.0


class UnreadableReply(BatchmetaError):
    """A 2xx whose body is not the one the contract promises: another service, or a proxy, answered."""


class Problem(BatchmetaError):
    """The service refused the call, and nothing was changed (a 5xx aside: then it is unknown).

    `retry_after_s` is the service's `Retry-After` in seconds. The lists name what was at fault, where that helps.
    """

    code: str = "about:blank"

    def __init__(self, reply: replies.Problem, retry_after_s: float | None = None) -> None:
        super().__init__(reply)
        self.code = reply.code
        self.status = reply.status
        self.detail = reply.detail
        self.retryable = reply.retryable
        self.request_id = reply.request_id
        self.errors = () if reply.errors is UNSET else tuple(reply.errors)
        self.global_indexes = () if reply.global_indexes is UNSET else tuple(reply.global_indexes)
        self.keys = () if reply.keys is UNSET else tuple(reply.keys)
        self.fields = () if reply.fields is UNSET else tuple(reply.fields)
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        wrong = "".join(f"; {error.loc}: {error.msg}" for error in self.errors)
        return f"{self.status} {self.code}: {self.detail}{wrong} (request {self.request_id})"


class BadRequest(Problem):
    """400: the request could not be read as HTTP."""

    code = "bad-request"


class Forbidden(Problem):
    """403: not allowed from this origin or host."""

    code = "forbidden"


class RouteNotFound(Problem):
    """404: no such route; is `base_url` right?"""

    code = "route-not-found"


class PartitionNotFound(Problem):
    """404: no partition ever had this name."""

    code = "partition-not-found"


class SampleNotFound(Problem):
    """404: an index that was never given out."""

    code = "sample-not-found"


class KeyNotFound(Problem):
    """404: no sample has this key."""

    code = "key-not-found"


class FieldNotFound(Problem):
    """404: the partition does not know this field."""

    code = "field-not-found"


class MethodNotAllowed(Problem):
    """405: the route does not take this method."""

    code = "method-not-allowed"


class NotAcceptable(Problem):
    """406: the service has no such form of the reply."""

    code = "not-acceptable"


class PartitionConflict(Problem):
    """409: the partition exists with other settings."""

    code = "partition-conflict"


class ClaimNotFound(Problem):
    """404: there is no such claim, or it was closed long ago."""

    code = "claim-not-found"


class ClearNotFound(Problem):
    """404: there is no such clear, or it was closed long ago."""

    code = "clear-not-found"


class CheckpointNotFound(Problem):
    """404: there is no checkpoint of this name."""

    code = "checkpoint-not-found"


class CheckpointExists(Problem):
    """409: a checkpoint of this name is there, and stays as it is."""

    code = "checkpoint-exists"


class CheckpointCorrupt(Problem):
    """409: the checkpoint's file cannot be read; nothing was changed."""

    code = "checkpoint-corrupt"


class EpochMismatch(Problem):
    """409: the state went back to a checkpoint since this client began; drop what came before, then `new_epoch()`."""

    code = "epoch-mismatch"


class LeaseLost(Problem):
    """409: the lease on the named samples has ended; others may have them now."""

    code = "lease-lost"


class SampleClearing(Problem):
    """409: the named samples are being cleared; retryable, once that clear is committed or aborted."""

    code = "sample-clearing"


class ClearClosed(Problem):
    """409: the clear was aborted when it is to be committed, or the reverse."""

    code = "clear-closed"


class PartitionSealed(Problem):
    """409: the partition is sealed and takes no more samples."""

    code = "partition-sealed"


class DtypeConflict(Problem):
    """409: the field has another dtype or rank."""

    code = "dtype-conflict"


class KindConflict(Problem):
    """409: tensor against object."""

    code = "kind-conflict"


class GroupConflict(Problem):
    """409: the sample is in another group; a group is set once."""

    code = "group-conflict"


class IdempotencyInFlight(Problem):
    """409: the same call is on its way, or was sent again and waits in this one's place; retryable, for its reply."""

    code = "idempotency-in-flight"


class PartitionCleared(Problem):
    """410: the partition was deleted."""

    code = "partition-cleared"


class SampleCleared(Problem):
    """410: an index that was given out and is not held here any more; `global_indexes` names them."""

    code = "sample-cleared"


class Compacted(Problem):
    """410: what changed since that revision is not known any more; begin anew with revision 0."""

    code = "compacted"


class PreconditionFailed(Problem):
    """412: changed since the ETag was taken."""

    code = "precondition-failed"


class BodyTooLarge(Problem):
    """413: more bytes than `limits.max_body_bytes`, or of a checkpoint than `limits.max_checkpoint_bytes`."""

    code = "body-too-large"


class UnsupportedMediaType(Problem):
    """415: the body is not `application/json`."""

    code = "unsupported-media-type"


class InvalidRequest(Problem):
    """422: the request is not valid; `errors` says where."""

    code = "invalid-request"


class DuplicateKeys(Problem):
    """422: a key stands twice in one write."""

    code = "duplicate-keys"


class DuplicateIndexes(Problem):
    """422: an index stands twice in one write."""

    code = "duplicate-indexes"


class IdempotencyMismatch(Problem):
    """422: the `idempotency_key` was sent with another call before; a key is for one call."""

    code = "idempotency-mismatch"


class TooManySamples(Problem):
    """429: the partition is full (`max_samples`); retryable once samples are deleted, or never if they are too many."""

    code = "too-many-samples"


class TooManyWaiting(Problem):
    """429: too many calls of this client wait already; retryable."""

    code = "too-many-waiting"


class Internal(Problem):
    """500: a fault of the service; whether the change was made is unknown."""

    code = "internal"


class Overloaded(Problem):
    """503: too much at once; retryable."""

    code = "overloaded"


class NotReady(Problem):
    """503: the service is starting or stopping; retryable."""

    code = "not-ready"


class JournalUnavailable(Problem):
    """503: the journal cannot be written, so nothing can be changed; retryable."""

    code = "journal-unavailable"


BY_CODE: Mapping[str, type[Problem]] = MappingProxyType({kind.code: kind for kind in Problem.__subclasses__()})
