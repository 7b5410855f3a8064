"""The OpenAPI document is whole and true: words, examples that fit, and the codes of each route."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from app.application import openapi
from app.contract import Operation
from app.reference import pages
from app.routes import ALL
from batchmeta.wire import PROBLEMS
from batchmeta.wire.replies import Reply
from core.errors import Refused
from tests.conftest import ROOT

DOCUMENT: dict[str, Any] = json.loads(json.dumps(openapi()))
OPERATIONS = [operation for routes in ALL for operation in routes.operations]
READING_POSTS = {"read", "read_backend_meta", "lookup_keys", "explain"}
each_operation = pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: f"{op.method} {op.path}")


def described(op: Operation) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["paths"][op.path][op.method.lower()]
    return found


def check(example: Any, schema: dict[str, Any]) -> None:
    whole = {**schema, "components": DOCUMENT["components"]}
    jsonschema_rs.Draft202012Validator(whole).validate(example)


def named(node: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every parameter and every member of an object, however deep, each with its place."""
    if isinstance(node, dict):
        if "in" in node and "name" in node:
            yield f"{place} {node['name']}", node
        for name, member in node.get("properties", {}).items():
            yield f"{place}.{name}", member
    for name, inner in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        if name != "example":
            yield from named(inner, f"{place}/{name}")


def test_every_member_and_every_parameter_has_words() -> None:
    found = list(named(DOCUMENT))
    assert len(found) > 400
    assert [place for place, one in found if not one.get("description")] == []


def test_a_member_without_words_is_noticed() -> None:
    schema = msgspec.json.schema(msgspec.defstruct("Bare", [("a", int), ("b", dict[str, int] | None, None)]))
    assert [place for place, one in named(schema) if not one.get("description")] == ["/$defs/Bare.a", "/$defs/Bare.b"]


def test_the_committed_document_is_the_app_s() -> None:
    assert (ROOT / "docs/reference/openapi.json").read_bytes() == pages()["openapi.json"]


def test_every_route_is_in_it() -> None:
    assert len(OPERATIONS) == sum(len(methods) for methods in DOCUMENT["paths"].values())
    assert len({described(op)["operationId"] for op in OPERATIONS}) == len(OPERATIONS) == 45


@each_operation
def test_a_route_has_words_and_error_codes(op: Operation) -> None:
    found = described(op)
    assert 10 < len(found["summary"]) < 140
    assert found["description"]
    said = " ".join(reply["description"] for reply in found["responses"].values())
    for code in (*op.errors, "invalid-request", "not-ready"):
        assert f"`{code}`" in said
        problem = found["responses"][str(PROBLEMS[code].status)]["content"]
        assert list(problem) == ["application/problem+json"]


@each_operation
def test_a_change_takes_a_key_and_may_be_refused_for_it(op: Operation) -> None:
    found = described(op)
    names = {parameter["name"] for parameter in found["parameters"] if not parameter["required"]}
    said = " ".join(reply["description"] for reply in found["responses"].values())
    is_replayed = [
        "Idempotency-Replayed" in found["responses"][str(status)].get("headers", {}) for status in op.replies
    ]
    assert op.changes == ("Idempotency-Key" in names) == all(is_replayed) == any(is_replayed)
    assert op.changes == ("`idempotency-mismatch`" in said) == ("`idempotency-in-flight`" in said)
    assert op.changes == (op.method != "GET" and op.operation_id not in READING_POSTS)


@each_operation
def test_its_request_example_is_what_the_decoder_takes(op: Operation) -> None:
    body = described(op).get("requestBody")
    assert (body is None) == (op.method in ("GET", "DELETE"))
    if op.is_stream:
        assert body is None or list(body["content"]) == ["application/octet-stream"]
    elif body is not None:
        content = body["content"]["application/json"]
        check(content["example"], content["schema"])
        msgspec.json.decode(json.dumps(content["example"]), type=op.takes)


@each_operation
def test_its_reply_examples_fit_their_schemas(op: Operation) -> None:
    for status, reply in described(op)["responses"].items():
        content = reply.get("content", {}).get("application/json")
        if content is not None:
            check(content["example"], content["schema"])
            kind: type[Reply] = op.replies[int(status)]
            msgspec.json.decode(json.dumps(content["example"]), type=kind)


def refusals(kind: type[Refused] = Refused) -> list[type[Refused]]:
    return [kind, *(below for child in kind.__subclasses__() for below in refusals(child))]


def test_each_code_is_one_class_of_the_one_tree_of_refusals() -> None:
    codes = [kind.code for kind in refusals() if "code" in vars(kind)]
    of_the_router, of_bugs = {"route-not-found", "method-not-allowed"}, {"internal"}
    assert sorted(codes) == sorted(PROBLEMS.keys() - of_the_router - of_bugs)


def test_an_example_that_does_not_fit_is_noticed() -> None:
    schema = {"$ref": "#/components/schemas/Health"}
    with pytest.raises(jsonschema_rs.ValidationError):
        check({"status": "poorly"}, schema)
