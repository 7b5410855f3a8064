"""From what an operation gives to a reply's status and bytes, one file per kind. Pure; called in the engine's thread,
before the commit. Columns come as JSON bytes and are passed through; only the small parts are encoded here.
"""

from .batch import inserted, page, tagged_page
from .checkpoints import checkpoint, checkpoints, deleted_checkpoint, went
from .claims import acked, claims, dead, extended, released_worker, seen
from .clears import aborted_clear, clear, clears, committed_clear, planned_clear
from .partitions import deleted_partition, partition, partitions
from .parts import rfc3339
from .production import backend_meta, patched_backend_meta, produced, production, revoked
from .samples import deleted_samples, found_keys, key_changes, key_list, patched_custom_meta
from .tasks import claim, consumption, explained, reset

__all__ = [
    "aborted_clear",
    "acked",
    "backend_meta",
    "checkpoint",
    "checkpoints",
    "claim",
    "claims",
    "clear",
    "clears",
    "committed_clear",
    "consumption",
    "dead",
    "deleted_checkpoint",
    "deleted_partition",
    "deleted_samples",
    "explained",
    "extended",
    "found_keys",
    "inserted",
    "key_changes",
    "key_list",
    "page",
    "partition",
    "partitions",
    "patched_backend_meta",
    "patched_custom_meta",
    "planned_clear",
    "produced",
    "production",
    "released_worker",
    "reset",
    "revoked",
    "rfc3339",
    "seen",
    "tagged_page",
    "went",
]  # fmt: skip
