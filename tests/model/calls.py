"""Every call in both of its forms: core's operation with its arguments and how its result is rendered, and a request.

The arguments come as core takes them; what the request says is derived from them, so that both mean the same.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from app import render
from app.incoming import Reply
from core.batch import View
from core.cells import Column
from core.operations import changes as following
from core.operations import clears, consumption, leases, partitions, read
from core.operations import produce as production
from core.operations import revoke as revoking
from core.operations.claim import Wanted, claim_now, explain_claim
from core.operations.claim import claim as claim_until
from core.operations.delete import delete
from core.operations.produce import RowWrite
from core.selection import Selector
from tests.core.world import ALL_PARTS, MANY
from tests.core.world import Schema as SchemaIn
from tests.model.model import Chosen

READS = ("batch-meta", "backend-meta", "lookup", "explain")
PAGE = 10_000


@dataclass(frozen=True)
class Call:
    method: str
    path: str
    body: Any
    operation: Callable[..., Any]
    render: Callable[[Any], Reply]
    arguments: tuple[Any, ...]

    @property
    def changes(self) -> bool:
        """Whether a key means anything to it."""
        return self.method != "GET" and not self.path.endswith(READS)


def of(name: str, *parts: str) -> str:
    return "/".join(["/v1/partitions", name, *parts])


def members(**given: Any) -> dict[str, Any]:
    """Those that are given."""
    return {member: value for member, value in given.items() if value is not None}


def column(said: Column | None) -> Any:
    """A column as a request has it."""
    if said is None or isinstance(said, list):
        return None if said is None else [json.loads(cell) for cell in said]
    return {"const": json.loads(said.const)}


def schema(said: SchemaIn) -> dict[str, Any]:
    return members(**msgspec.to_builtins(said))


def rows(write: RowWrite) -> dict[str, Any]:
    return members(
        global_indexes=write.indexes, keys=write.keys, group_ids=write.group_ids,
        custom_meta=column(write.custom_meta), ttl_s=write.ttl_s,
    )  # fmt: skip


def etag(revision: int) -> str:
    return f'"{revision}"'


SUMMARY = render.partition(etag)


# Partitions


def put(name: str, expected: int | None, most: int | None, attempts: int | None, fields: dict[str, SchemaIn]) -> Call:
    said = {known: schema(declared) for known, declared in fields.items()}
    body = members(expected_samples=expected, max_samples=most, max_attempts=attempts, fields=said)
    return Call("PUT", of(name), body, partitions.put_partition, SUMMARY, (name, expected, most, attempts, fields))


def patch(name: str, expected: int | None, most: int | None, attempts: int | None) -> Call:
    body = members(expected_samples=expected, max_samples=most, max_attempts=attempts)
    return Call("PATCH", of(name), body, partitions.patch_partition, SUMMARY, (name, expected, most, attempts))


def seal(name: str) -> Call:
    return Call("POST", of(name, "seal"), {}, partitions.seal_partition, SUMMARY, (name,))


def delete_partition(name: str) -> Call:
    operation, shown = partitions.delete_partition, render.deleted_partition
    return Call("DELETE", of(name), None, operation, shown, (name, None))


def get(name: str) -> Call:
    return Call("GET", of(name), None, partitions.get_partition, SUMMARY, (name,))


def watch(name: str, revision: int, wait_s: float) -> Call:
    path = f"{of(name)}?revision={revision}&wait_s={wait_s}"
    return Call("GET", path, None, partitions.await_partition, SUMMARY, (name, revision, wait_s))


def list_partitions() -> Call:
    path = f"/v1/partitions?limit={PAGE}"
    return Call("GET", path, None, partitions.list_partitions, render.partitions, ("", PAGE, None))


# Writing


def insert(name: str, number: int | None, write: RowWrite) -> Call:
    body = members(count=number) | rows(write)
    return Call("POST", of(name, "samples"), body, production.insert, render.inserted, (name, number, write, False))


def produce(
    name: str,
    write: RowWrite,
    create: bool,
    schemas: Mapping[str, SchemaIn],
    backend: Mapping[str, Column],
    skip: bool = False,
) -> Call:
    body = rows(write) | {
        "create": create,
        "on_cleared": "skip" if skip else "refuse",
        "field_schema": {known: schema(said) for known, said in schemas.items()},
        "backend_meta": {known: column(said) for known, said in backend.items()},
    }
    arguments = (name, write, create, schemas, backend, skip)
    return Call("POST", of(name, "production"), body, production.produce, render.produced, arguments)


def patch_custom(name: str, write: RowWrite, if_revision: int | None) -> Call:
    body = rows(write) | members(if_revision=if_revision)
    operation, shown = production.patch_custom_meta, render.patched_custom_meta
    return Call("PATCH", of(name, "custom-meta"), body, operation, shown, (name, write, if_revision))


def patch_backend(name: str, write: RowWrite, columns: Mapping[str, Column]) -> Call:
    body = rows(write) | {"backend_meta": {known: column(said) for known, said in columns.items()}}
    operation, shown = production.patch_backend_meta, render.patched_backend_meta
    return Call("PATCH", of(name, "backend-meta"), body, operation, shown, (name, write, columns))


def selector(chosen: Chosen) -> Selector:
    return Selector(chosen.indexes, chosen.keys, chosen.groups, chosen.prefix)


def selected(chosen: Chosen) -> dict[str, Any]:
    """The selector's member."""
    return members(
        global_indexes=chosen.indexes, keys=chosen.keys, group_ids=chosen.groups, key_prefix=chosen.prefix
    )  # fmt: skip


def delete_samples(name: str, chosen: Chosen) -> Call:
    path, shown = of(name, "samples", "delete"), render.deleted_samples(name)
    return Call("POST", path, selected(chosen), delete, shown, (name, selector(chosen)))


def revoke(name: str, chosen: Chosen, fields: Sequence[str]) -> Call:
    body, shown = selected(chosen) | {"fields": list(fields)}, render.revoked(name)
    arguments = (name, selector(chosen), tuple(fields))
    return Call("POST", of(name, "production", "revoke"), body, revoking.revoke, shown, arguments)


# Clears


def plan_clear(name: str, chosen: Chosen, is_all: bool, with_tombstones: bool) -> Call:
    body = selected(chosen) | {"all": is_all, "tombstone": with_tombstones, "expand": True}
    wanted = clears.Wanted(selector(chosen), is_all, None, with_tombstones)
    return Call("POST", of(name, "clears"), body, clears.plan_clear, render.planned_clear, (name, wanted, True))


def commit_clear(clear_id: str) -> Call:
    path = f"/v1/clears/{clear_id}/commit"
    return Call("POST", path, {}, clears.commit_clear, render.committed_clear, (clear_id,))


def abort_clear(clear_id: str) -> Call:
    return Call("POST", f"/v1/clears/{clear_id}/abort", {}, clears.abort_clear, render.aborted_clear, (clear_id,))


def get_clear(clear_id: str) -> Call:
    path = f"/v1/clears/{clear_id}?expand=true"
    return Call("GET", path, None, clears.get_clear, render.clear, (clear_id, True))


def list_clears(state: str | None = None) -> Call:
    path = f"/v1/clears?limit={PAGE}" + (f"&state={state}" if state else "")
    return Call("GET", path, None, clears.list_clears, render.clears, (state, PAGE, None))


# Consuming


def claim_body(wanted: Wanted) -> dict[str, Any]:
    arguments = msgspec.to_builtins(wanted.sampler)
    return members(
        fields=list(wanted.fields), batch_size=wanted.most, min_batch_size=wanted.least, wait_s=wanted.wait_s,
        sampler={"name": "grpo_group", **arguments} if arguments else {"name": "sequential"}, expand=True,
        ack=None if wanted.lease_s is None else "explicit", lease_s=wanted.lease_s, worker=wanted.worker,
    )  # fmt: skip


def claim(name: str, wanted: Wanted) -> Call:
    operation = claim_until if wanted.wait_s else claim_now
    path = of(name, "tasks", wanted.task, "claims")
    return Call("POST", path, claim_body(wanted), operation, render.claim, (name, wanted))


def explain(name: str, wanted: Wanted) -> Call:
    path = of(name, "tasks", wanted.task, "explain")
    return Call("POST", path, claim_body(wanted), explain_claim, render.explained, (name, wanted))


def reset(name: str, task: str | None) -> Call:
    path = of(name, *(("tasks", task) if task else ()), "consumption", "reset")
    return Call("POST", path, {}, consumption.reset_consumption, render.reset(name), (name, task))


def ack(claim_id: str, said: leases.Ack) -> Call:
    accept = "all" if said.accept is None else said.accept
    reject = [{"global_index": index, "reason": reason} for index, reason in said.reject]
    body = {"token": said.token, "accept": accept, "release": said.release, "reject": reject}
    return Call("POST", f"/v1/claims/{claim_id}/ack", body, leases.ack, render.acked, (claim_id, said))


def extend(claim_id: str, token: str, length_s: float) -> Call:
    body, path = {"token": token, "lease_s": length_s}, f"/v1/claims/{claim_id}/extend"
    return Call("POST", path, body, leases.extend, render.extended, (claim_id, token, length_s))


def release_worker(worker: str) -> Call:
    path = f"/v1/workers/{worker}/release"
    return Call("POST", path, {}, leases.release_worker, render.released_worker, (worker,))


def get_claim(claim_id: str) -> Call:
    return Call("GET", f"/v1/claims/{claim_id}", None, leases.get_claim, render.seen, (claim_id,))


def list_claims(partition: str | None = None, task: str | None = None, worker: str | None = None) -> Call:
    wanted = members(partition_id=partition, task=task, worker=worker)
    path = "/v1/claims?" + "&".join(f"{name}={value}" for name, value in wanted.items())
    return Call("GET", path, None, leases.list_claims, render.claims, (partition, task, worker))


# Reading


def batch(name: str, indexes: Sequence[int] | None, fields: Sequence[str] | None, compact: bool) -> Call:
    body = members(global_indexes=indexes, fields=fields, include=sorted(ALL_PARTS), expand=True, compact=compact)
    view = View(None if fields is None else tuple(fields), ALL_PARTS, expand=True, compact=compact)
    arguments = (name, Selector(indexes), view, False, MANY, None)
    return Call("POST", of(name, "batch-meta"), body, read.read, render.page(), arguments)


def batch_of(name: str, chosen: Chosen) -> Call:
    """Only which rows are meant."""
    body = selected(chosen) | {"fields": [], "include": []}
    arguments = (name, selector(chosen), View((), frozenset()), False, MANY, None)
    return Call("POST", of(name, "batch-meta"), body, read.read, render.page(), arguments)


def backend_meta(name: str, indexes: Sequence[int], fields: Sequence[str] | None) -> Call:
    body = members(global_indexes=indexes, fields=fields, expand=True)
    view = View(None if fields is None else tuple(fields), expand=True)
    arguments = (name, Selector(indexes), view, MANY, None)
    return Call("POST", of(name, "backend-meta"), body, read.read_backend_meta, render.backend_meta, arguments)


def statuses(name: str, fields: Sequence[str]) -> Call:
    path = f"{of(name, 'production')}?fields={','.join(fields)}&limit={PAGE}"
    return Call("GET", path, None, read.read_production, render.production, (name, tuple(fields), PAGE, None))


def keys(name: str, prefix: str) -> Call:
    path = f"{of(name, 'keys')}?prefix={prefix}&limit={PAGE}"
    return Call("GET", path, None, read.list_keys, render.key_list, (name, prefix, PAGE, None))


def changes(name: str, since: int, wait_s: float, limit: int = PAGE, cursor: str | None = None) -> Call:
    path = f"{of(name, 'keys')}?since_revision={since}&limit={limit}"
    path += (f"&wait_s={wait_s}" if wait_s else "") + (f"&cursor={cursor}" if cursor else "")
    asked = following.Asked(since, "", None, limit, cursor)
    if wait_s:
        return Call("GET", path, None, following.await_changes, render.key_changes, (name, asked, wait_s))
    return Call("GET", path, None, following.list_changes, render.key_changes, (name, asked))


def lookup(name: str, indexes: list[int]) -> Call:
    body = {"global_indexes": indexes}
    return Call("POST", of(name, "keys", "lookup"), body, read.lookup_keys, render.found_keys, (name, indexes))


def consumption_of(name: str, task: str) -> Call:
    path = f"{of(name, 'tasks', task, 'consumption')}?limit={PAGE}"
    operation, shown = consumption.read_consumption, render.consumption
    return Call("GET", path, None, operation, shown, (name, task, False, PAGE, None))


def dead(name: str, task: str) -> Call:
    return Call("GET", of(name, "tasks", task, "dead"), None, leases.list_dead, render.dead, (name, task))
