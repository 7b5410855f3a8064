"""Partitions: put, patch, seal, delete; one, a list, and one that is waited for."""

from app.routes import partitions_render
from core.operations import partitions
from tests.core.world import Schema as SchemaIn
from tests.model.calls.call import PAGE, Call, members, of, schema


def etag(revision: int) -> str:
    return f'"{revision}"'


SUMMARY = partitions_render.partition(etag)


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
    operation, shown = partitions.delete_partition, partitions_render.deleted_partition
    return Call("DELETE", of(name), None, operation, shown, (name, None))


def get(name: str) -> Call:
    return Call("GET", of(name), None, partitions.get_partition, SUMMARY, (name,))


def watch(name: str, revision: int, wait_s: float) -> Call:
    path = f"{of(name)}?revision={revision}&wait_s={wait_s}"
    return Call("GET", path, None, partitions.await_partition, SUMMARY, (name, revision, wait_s))


def list_partitions(prefix: str = "") -> Call:
    path = f"/v1/partitions?limit={PAGE}&prefix={prefix}"
    return Call("GET", path, None, partitions.list_partitions, partitions_render.partitions, (prefix, PAGE, None))
