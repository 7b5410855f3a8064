"""Every error code of the contract (contract#errors): its status, its title, and whether to send the call again.

The server's `app/errors.py` and the client's exceptions are both built from this one table.
"""

from typing import NamedTuple


class ProblemType(NamedTuple):
    """One row of the table: HTTP status, title, and whether the same call may succeed later."""

    status: int
    title: str
    retryable: bool = False


PROBLEMS: dict[str, ProblemType] = {
    "bad-request": ProblemType(400, "The request could not be read"),
    "forbidden": ProblemType(403, "Not allowed from here"),
    "route-not-found": ProblemType(404, "No such route"),
    "partition-not-found": ProblemType(404, "No such partition"),
    "sample-not-found": ProblemType(404, "No such sample"),
    "key-not-found": ProblemType(404, "No such key"),
    "field-not-found": ProblemType(404, "No such field"),
    "claim-not-found": ProblemType(404, "No such claim"),
    "clear-not-found": ProblemType(404, "No such clear"),
    "checkpoint-not-found": ProblemType(404, "No such checkpoint"),
    "method-not-allowed": ProblemType(405, "Method not allowed"),
    "not-acceptable": ProblemType(406, "No acceptable form"),
    "partition-conflict": ProblemType(409, "The partition has other settings"),
    "partition-sealed": ProblemType(409, "The partition takes no more samples"),
    "dtype-conflict": ProblemType(409, "The field has another dtype or rank"),
    "kind-conflict": ProblemType(409, "The field is of another kind"),
    "group-conflict": ProblemType(409, "The sample is in another group"),
    "sample-clearing": ProblemType(409, "The sample is being cleared", retryable=True),
    "lease-lost": ProblemType(409, "The lease has ended"),
    "clear-closed": ProblemType(409, "The clear is closed"),
    "epoch-mismatch": ProblemType(409, "The state went back to a checkpoint"),
    "idempotency-in-flight": ProblemType(409, "A call with this key is on its way", retryable=True),
    "checkpoint-exists": ProblemType(409, "The name is taken"),
    "checkpoint-corrupt": ProblemType(409, "The checkpoint cannot be read"),
    "partition-cleared": ProblemType(410, "The partition was deleted"),
    "sample-cleared": ProblemType(410, "The sample was cleared"),
    "compacted": ProblemType(410, "Too old to tell what changed since"),
    "precondition-failed": ProblemType(412, "Changed meanwhile"),
    "body-too-large": ProblemType(413, "Body too large"),
    "unsupported-media-type": ProblemType(415, "Unsupported media type"),
    "invalid-request": ProblemType(422, "The request is not valid"),
    "duplicate-keys": ProblemType(422, "A key stands twice"),
    "duplicate-indexes": ProblemType(422, "An index stands twice"),
    "idempotency-mismatch": ProblemType(422, "The key was sent with another request"),
    "too-many-samples": ProblemType(429, "The partition is full", retryable=True),
    "too-many-waiting": ProblemType(429, "Too many waiting calls", retryable=True),
    "internal": ProblemType(500, "Internal error"),
    "overloaded": ProblemType(503, "Overloaded", retryable=True),
    "not-ready": ProblemType(503, "Not ready", retryable=True),
    "journal-unavailable": ProblemType(503, "The journal cannot be written", retryable=True),
}
