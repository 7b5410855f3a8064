"""Every argument of the client's calls, and of what kind it is. A new argument without a row fails a test."""

import inspect
from collections.abc import Callable
from typing import Any

from batchmeta import AsyncClient, AsyncLease
from tests.client import given
from tests.client.given import Kind

# Given to each call beside the argument that is tested.
NEEDED: dict[str, Any] = {
    "partition_id": "p",
    "task": "t",
    "fields": ["f"],
    "batch_size": 2,
    "field_schema": {},
    "custom_meta": [],
    "backend_meta": {},
    "since_revision": 0,
    "global_indexes": [0],
    "claim_id": "c",
    "token": "k",
    "lease_s": 60,
    "worker": "w",
    "clear_id": "x",
    "name": "n",
    "path": __file__,
}
SAME: dict[str, Kind] = {
    "partition_id": given.NAME, "task": given.NAME, "claim_id": given.NAME, "clear_id": given.NAME,
    "idempotency_key": given.KEY, "if_match": given.HEADER, "token": given.TEXT,
    "key_prefix": given.TEXT, "prefix": given.TEXT, "worker": given.TEXT, "state": given.TEXT, "revived": given.TEXT,
    "on_cleared": given.TEXT, "custom_meta_mode": given.TEXT,
    "count": given.WHOLE, "batch_size": given.WHOLE, "min_batch_size": given.WHOLE, "if_revision": given.WHOLE,
    "since_revision": given.WHOLE, "revision": given.WHOLE, "expected_samples": given.WHOLE,
    "max_samples": given.WHOLE, "max_attempts": given.WHOLE,
    "wait_s": given.REAL, "ttl_s": given.REAL, "lease_s": given.REAL,
    "create": given.FLAG, "strict": given.FLAG, "compact": given.FLAG, "expand": given.FLAG, "all_rows": given.FLAG,
    "tombstone": given.FLAG, "counts_only": given.FLAG, "counts": given.FLAG,
    "fields": given.TEXTS, "keys": given.TEXTS, "include": given.TEXTS,
    "global_indexes": given.WHOLES, "release": given.WHOLES, "accept": given.ACCEPT, "reject": given.REJECT,
    "group_ids": given.GROUPS, "custom_meta": given.COLUMN, "backend_meta": given.COLUMNS,
    "path": given.PATH, "field_schema": given.SCHEMAS, "where": given.WHERE, "sampler": given.SAMPLER,
}  # fmt: skip
# The same name, another kind.
OTHER: dict[tuple[str, str], Kind] = {
    ("insert", "group_ids"): given.COLUMN,
    ("produce", "group_ids"): given.COLUMN,
    ("put_partition", "fields"): given.DECLARED,
    ("open_claims", "partition_id"): given.TEXT,
    ("open_claims", "task"): given.TEXT,
    ("claims", "wait_s"): given.LOOP_SECONDS,
    ("release_worker", "worker"): given.NAME,
    ("create_checkpoint", "name"): given.TEXT,
    ("checkpoint", "name"): given.NAME,
    ("delete_checkpoint", "name"): given.NAME,
    ("restore_checkpoint", "name"): given.NAME,
    ("download_checkpoint", "name"): given.NAME,
    ("upload_checkpoint", "name"): given.NAME,
}
IN_ROUTE = {
    "partitions": "partition_id",
    "tasks": "task",
    "claims": "claim_id",
    "clears": "clear_id",
    "checkpoints": "name",
    "workers": "worker",
}


def calls() -> dict[str, Callable[..., Any]]:
    """The public calls by name, those that only open or close left out."""
    found = {name: call for name, call in inspect.getmembers(AsyncClient, inspect.isfunction) if name[0] != "_"}
    return {
        **{name: call for name, call in found.items() if name not in ("aclose", "new_epoch")},
        "lease.ack": AsyncLease.ack,
    }


def arguments() -> list[tuple[str, str]]:
    """Each call with each of its arguments."""
    return [(name, each) for name, call in calls().items() for each in list(inspect.signature(call).parameters)[1:]]


def kind_of(call: str, argument: str) -> Kind:
    """KeyError for an argument that nobody thought of."""
    return OTHER.get((call, argument)) or SAME[argument]


def with_needed(call: str, argument: str, value: Any) -> dict[str, Any]:
    """Arguments with which the call can be made."""
    signature = inspect.signature(calls()[call]).parameters
    needed = {
        name: NEEDED[name]
        for name in signature
        if name in NEEDED and signature[name].default is inspect.Parameter.empty
    }
    return {**needed, argument: value}
