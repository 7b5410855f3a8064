"""Makes the OpenAPI document from the table that also decodes: Structs become schemas, docstrings descriptions."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from batchmeta.wire import PROBLEMS
from batchmeta.wire.replies import Problem
from batchmeta.wire.requests import Empty

from . import keys
from .contract import Operation
from .media_types import OCTETS
from .version import VERSION

_REF = "#/components/schemas/{name}"
_ALWAYS = (
    "forbidden",
    "not-acceptable",
    "invalid-request",
    "internal",
    "overloaded",
    "not-ready",
    "journal-unavailable",
)
_BODY = ("body-too-large", "unsupported-media-type")
_KEYED = ("idempotency-mismatch", "idempotency-in-flight")
_DESCRIPTION = """The control plane of a post-training relay: which samples x fields are produced, which task has
consumed what, what each field looks like, and where each cell's bytes lie. Tensor data never passes through this
service.

Errors are RFC 9457 problems with a stable `code`. Every reply carries `X-Request-ID` and `X-Epoch`. A call that
changes something may carry an `Idempotency-Key`: sent again, it changes nothing more and gets the first reply.
What the calls mean together is in docs/reference/contract.md; `contract#leases` is a part of it."""
_PATH_PARAMETERS = {
    "partition_id": ("Name of the partition", "train@step_0"),
    "task": ("Name of the consumer", "actor_update"),
    "claim_id": ("Id of a claim", "c3"),
    "clear_id": ("Id of a clear", "x9"),
    "worker": ("Name of a worker, as its claims give it", "actor-0"),
}

_CHECKPOINT = {
    "name": "name",
    "in": "path",
    "required": True,
    "description": "Name of a checkpoint",
    "schema": {"type": "string", "maxLength": 100, "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]*$"},
    "example": "step-40",
}
_EPOCH = {
    "name": "X-Epoch",
    "in": "header",
    "required": False,
    "description": "As an earlier reply gave it: the call is refused once the state went back to a checkpoint since",
    "schema": {"type": "integer", "minimum": 0, "maximum": 2**63 - 1},
    "example": 1,
}
_KEY = {
    "name": keys.NAME,
    "in": "header",
    "required": False,
    "description": "Made anew for each call and sent again with it: the change is made once, its reply comes again",
    "schema": {"type": "string", "minLength": 1, "maxLength": keys.MAX_LENGTH, "pattern": keys.PATTERN},
    "example": "6f1c2f0e9d8b4c55a2f7b0f4f3a1d7c9",
}
_TAGS = {
    "If-Match": "Only at the state of these entity tags, else 412",
    "If-None-Match": "Entity tags that the caller has: 304 where the state is one of theirs",
}
_REVALIDATED = ("get_batch_meta", "get_checkpoint_content")
_FILE: dict[str, Any] = {OCTETS: {"schema": {"type": "string", "format": "binary"}}}
_DIGEST_SCHEMA = {"type": "string", "pattern": "^sha-256=:[A-Za-z0-9+/]{43}=:$"}
_DIGEST = {
    "name": "Repr-Digest",
    "in": "header",
    "required": False,
    "description": "SHA-256 of the file (RFC 9530); a body of another one is refused",
    "schema": _DIGEST_SCHEMA,
    "example": "sha-256=:LCa0a2j/xo/5m0U8HTBBNBNCLXBkg7+g+YpeiGJm564=:",
}
_FILE_HEADERS = {"Repr-Digest": {"description": "SHA-256 of the file (RFC 9530)", "schema": _DIGEST_SCHEMA}}
_REPLAYED = {
    "description": "This is the reply to an earlier call with this Idempotency-Key",
    "required": False,
    "schema": {"type": "string", "enum": ["true"]},
}


def document(operations: Iterable[Operation]) -> dict[str, Any]:
    """OpenAPI 3.1."""
    operations = list(operations)
    types = [Problem, *{t for op in operations for t in (op.takes, *op.replies.values()) if t not in (Empty, bytes)}]
    types.sort(key=lambda t: t.__name__)
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    _say_at_members(components)
    by_type = dict(zip(types, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for op in operations:
        paths.setdefault(op.path, {})[op.method.lower()] = _operation(op, by_type, components)
    used = {
        name: schema
        for name, schema in components.items()
        if not name.endswith("Query") and name not in ("ListKeys", "ListClaims", "ListClears")
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "batchmeta", "version": VERSION, "description": _DESCRIPTION},
        "paths": paths,
        "components": {"schemas": dict(sorted(used.items()))},
    }


def _say_at_members(components: Mapping[str, Any]) -> None:
    """`X | None` is an `anyOf`, in which the words of X stand inside: they belong to the member, where readers look."""
    for member in members(components):
        (kind, *others) = [kind for kind in member.get("anyOf", ()) if kind != {"type": "null"}] or [{}]
        if not others and "description" in kind:
            member.setdefault("description", kind.pop("description"))


def members(schema: object) -> Iterator[dict[str, Any]]:
    """The schemas of all members, of inner objects too."""
    if isinstance(schema, Mapping):
        properties = schema.get("properties", {})
        yield from properties.values()
        for inner in (*properties.values(), *(part for name, part in schema.items() if name != "properties")):
            yield from members(inner)
    elif isinstance(schema, list):
        for part in schema:
            yield from members(part)


def _operation(op: Operation, by_type: Mapping[type, Any], components: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {
        "tags": [op.tag],
        "operationId": op.operation_id,
        "summary": op.summary.replace("`", ""),  # words only: pages show it as it is
        "description": op.description or op.summary,
        "parameters": [*_path_parameters(op.path), *_query_parameters(op, components), *_header_parameters(op)],
        "responses": {**_replies(op, by_type), **_problems(op, by_type)},
    }
    if op.method not in ("GET", "DELETE"):
        out["requestBody"] = _request_body(op, by_type)
    return out


def _path_parameters(path: str) -> list[dict[str, Any]]:
    name_schema = {
        "type": "string",
        "minLength": 1,
        "maxLength": 200,
        "pattern": r"^(?!\.\.?$)[^\x00-\x1f\x7f-\x9f/\\]+$",
    }
    named = [
        {"name": name, "in": "path", "required": True, "description": text, "schema": name_schema, "example": example}
        for name, (text, example) in _PATH_PARAMETERS.items()
        if f"{{{name}}}" in path
    ]
    return [*named, *([_CHECKPOINT] if "{name}" in path else [])]


def _query_parameters(op: Operation, components: Mapping[str, Any]) -> list[dict[str, Any]]:
    if op.method not in ("GET", "DELETE") or op.takes is Empty:
        return []
    schema = components[op.takes.__name__]
    required = schema.get("required", ())
    return [
        {"name": name, "in": "query", "required": name in required, **_worded(member)}
        for name, member in schema["properties"].items()
    ]


def _worded(member: Mapping[str, Any]) -> dict[str, Any]:
    """A parameter has its words beside its schema."""
    schema = _not_null(member)
    schema.pop("description", None)
    return {"description": member["description"], "schema": schema}


def _not_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A query has no null: a parameter is there or not."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    return dict(kinds[0]) if len(kinds) == 1 else {k: v for k, v in schema.items() if k != "default"}


def _header_parameters(op: Operation) -> list[dict[str, Any]]:
    epoch = [_EPOCH] if op.path.startswith("/v1/") else []
    digest = [_DIGEST] if op.is_stream and op.changes else []
    return [*_etag_parameters(op), *digest, *epoch, *([_KEY] if op.changes else [])]


def _etag_parameters(op: Operation) -> list[dict[str, Any]]:
    if not (op.has_etag and op.method == "GET") and op.operation_id != "delete_partition":
        return []
    name = "If-None-Match" if op.operation_id in _REVALIDATED else "If-Match"
    if op.operation_id == "get_partition":
        return []
    return [{"name": name, "in": "header", "required": False, "description": _TAGS[name], "schema": {"type": "string"}}]


def _request_body(op: Operation, by_type: Mapping[type, Any]) -> dict[str, Any]:
    if op.is_stream:
        return {"required": True, "content": _FILE}
    schema = {"type": "object", "additionalProperties": False} if op.takes is Empty else by_type[op.takes]
    required = op.takes is not Empty and bool(msgspec.structs.fields(op.takes)[0].required)
    return {"required": required, "content": {"application/json": {"schema": schema, "example": op.example}}}


def _replies(op: Operation, by_type: Mapping[type, Any]) -> dict[str, Any]:
    several = isinstance(op.reply_example, dict) and set(op.reply_example) == set(op.replies)
    out = {}
    for status, kind in op.replies.items():
        if kind is bytes:
            out[str(status)] = {"description": "The file", "headers": _FILE_HEADERS, "content": _FILE}
            continue
        example = op.reply_example[status] if several else op.reply_example
        content = {"application/json": {"schema": by_type[kind], "example": example}}
        out[str(status)] = {"description": (kind.__doc__ or op.summary).splitlines()[0], "content": content}
        if op.changes:
            out[str(status)]["headers"] = {"Idempotency-Replayed": _REPLAYED}
    if op.operation_id in _REVALIDATED:
        out["304"] = {"description": "Not changed since the tag in If-None-Match"}
    return out


def _problems(op: Operation, by_type: Mapping[type, Any]) -> dict[str, Any]:
    codes = {*op.errors, *_ALWAYS, *(_BODY if op.method not in ("GET", "DELETE") else ("body-too-large",))}
    codes |= {*_KEYED} if op.changes else set()
    codes |= {"epoch-mismatch"} if op.path.startswith("/v1/") else set()
    by_status: dict[int, list[str]] = {}
    for code in sorted(codes):
        by_status.setdefault(PROBLEMS[code].status, []).append(code)
    content = {"application/problem+json": {"schema": by_type[Problem]}}
    return {
        str(status): {"description": "; ".join(f"`{c}`: {PROBLEMS[c].title}" for c in named), "content": content}
        for status, named in sorted(by_status.items())
    }
