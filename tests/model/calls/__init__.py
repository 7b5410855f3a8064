"""Every call in both of its forms: core's operation with its arguments and how its result is rendered, and a request.

The arguments come as core takes them; what the request says is derived from them, so that both mean the same.
"""

from tests.model.calls.call import Call, conditions
from tests.model.calls.clearing import abort_clear, commit_clear, get_clear, list_clears, plan_clear
from tests.model.calls.consuming import ack, claim, explain, extend, get_claim, list_claims, release_worker, reset
from tests.model.calls.partitions import delete_partition, get, list_partitions, patch, put, seal, watch
from tests.model.calls.reading import (
    backend_meta,
    batch,
    batch_of,
    changes,
    consumption_of,
    dead,
    keys,
    lookup,
    statuses,
)
from tests.model.calls.writing import delete_samples, insert, patch_backend, patch_custom, produce, revoke

__all__ = [
    "Call",
    "abort_clear",
    "ack",
    "backend_meta",
    "batch",
    "batch_of",
    "changes",
    "claim",
    "commit_clear",
    "conditions",
    "consumption_of",
    "dead",
    "delete_partition",
    "delete_samples",
    "explain",
    "extend",
    "get",
    "get_claim",
    "get_clear",
    "insert",
    "keys",
    "list_claims",
    "list_clears",
    "list_partitions",
    "lookup",
    "patch",
    "patch_backend",
    "patch_custom",
    "plan_clear",
    "produce",
    "put",
    "release_worker",
    "reset",
    "revoke",
    "seal",
    "statuses",
    "watch",
]
