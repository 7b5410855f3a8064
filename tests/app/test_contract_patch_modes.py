"""`custom_meta_mode` of insert, produce and PATCH, as contract#custom-meta has it, over HTTP."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from .service import Api, refused

N = {"n": {"dtype": "int64", "shape": []}}
Write = Callable[[Api, Any, dict[str, Any]], Any]


def meta(api: Api, key: str = "a") -> Any:
    return api.ok("POST", "batch-meta", {"keys": [key], "include": ["custom_meta"]})["custom_meta"][0]


def insert(api: Api, cell: Any, more: dict[str, Any]) -> Any:
    return api.ok("POST", "samples", {"keys": ["a"], "custom_meta": [cell], **more})


def produce(api: Api, cell: Any, more: dict[str, Any]) -> Any:
    body = {"keys": ["a"], "create": True, "field_schema": N, "custom_meta": [cell], **more}
    return api.ok("POST", "production", body)


def patch(api: Api, cell: Any, more: dict[str, Any]) -> Any:
    return api.ok("PATCH", "custom-meta", {"keys": ["a"], "custom_meta": [cell], **more})


each_write = pytest.mark.parametrize("write", [insert, produce, patch], ids=lambda write: write.__name__)
OLD = {"at": {"node": 1, "slot": 2}, "try": 1, "é": [None]}
NEW = {"at": {"node": 3, "none": None}, "try": None, "日本": {}}
UPDATED = {"at": {"node": 3, "none": None}, "try": None, "é": [None], "日本": {}}
MERGED = {"at": {"node": 3, "slot": 2}, "é": [None], "日本": {}}


@each_write
@pytest.mark.parametrize(
    ("more", "result"),
    [({"custom_meta_mode": "update"}, UPDATED), ({"custom_meta_mode": "merge"}, MERGED), ({}, MERGED)],
)
def test_each_write_patches_in_the_mode_it_says(api: Api, write: Write, more: dict[str, Any], result: Any) -> None:
    api.insert("a", custom_meta=[OLD])
    write(api, NEW, more)
    assert json.dumps(meta(api)) == json.dumps(result)


@each_write
def test_null_in_the_column_leaves_a_row_alone_in_both_modes(api: Api, write: Write) -> None:
    api.insert("a", custom_meta=[OLD])
    write(api, None, {"custom_meta_mode": "update"})
    assert meta(api) == OLD


def test_tags_of_new_and_known_keys_are_put_in_one_call(api: Api) -> None:
    api.insert("a", custom_meta=[OLD])
    body = {"keys": ["a", "b"], "custom_meta": {"const": {"try": None}}, "custom_meta_mode": "update"}
    out = api.ok("POST", "samples", {**body, "expand": True})
    assert (out["created"], out["custom_meta"]) == (1, [{**OLD, "try": None}, {"try": None}])
    again = api.ok("POST", "samples", {**body, "expand": True})
    assert (again["created"], again["custom_meta"], again["revision"]) == (0, out["custom_meta"], out["revision"])


@pytest.mark.parametrize("verb", ["samples", "production"])
def test_a_large_body_has_its_mode_too(api: Api, verb: str) -> None:
    """Such a body is decoded in pieces."""
    keys = [f"k{at}" for at in range(4000)]
    body: dict[str, Any] = {
        "keys": keys,
        "custom_meta": [{"n": None, "text": "x" * 100}] * 4000,
        "custom_meta_mode": "update",
    }
    body |= {"create": True, "field_schema": N} if verb == "production" else {}
    api.ok("POST", verb, body)
    assert meta(api, "k3999") == {"n": None, "text": "x" * 100}
    refused(api.send("POST", verb, body | {"custom_meta_mode": "both"}), 422, "invalid-request", "merge, update")


def test_puts_of_one_row_that_differ_in_the_mode_alone(api: Api) -> None:
    """Such bodies are read by their form."""
    for at, mode in enumerate(["merge", "update", None, "update", "merge"]):
        body = {"keys": [f"k{at}"], "create": True, "field_schema": N, "custom_meta": [{"x": None}]}
        api.ok("POST", "production", body | ({"custom_meta_mode": mode} if mode else {}))
    assert [meta(api, f"k{at}") for at in range(5)] == [{}, {"x": None}, {}, {"x": None}, {}]


@each_write
def test_a_call_sent_again_under_its_key_is_made_once(api: Api, write: Write) -> None:
    api.insert("a", custom_meta=[{"n": 1}])
    paths = {"insert": ("POST", "samples"), "produce": ("POST", "production"), "patch": ("PATCH", "custom-meta")}
    body = {"keys": ["a"], "custom_meta": [{"n": None}], "custom_meta_mode": "update"}
    body |= {"field_schema": N} if write is produce else {}
    headers = {"Idempotency-Key": f"{api.name}-{write.__name__}"}
    method, path = paths[write.__name__]
    first = api.send(method, path, body, headers=headers)
    patch(api, {"n": 2}, {})
    again = api.send(method, path, body, headers=headers)
    assert (first.status_code, first.content) == (again.status_code, again.content)
    assert again.headers["idempotency-replayed"] == "true"
    assert meta(api) == {"n": 2}
    other = api.send(method, path, body | {"custom_meta_mode": "merge"}, headers=headers)
    refused(other, 422, "idempotency-mismatch")


def test_a_member_that_is_null_exists_and_equals_nothing(api: Api) -> None:
    insert(api, {"n": None, "m": {"x": None}}, {"custom_meta_mode": "update"})

    def finds(**condition: Any) -> bool:
        return bool(api.ok("GET", "keys", params={"where": json.dumps([condition])})["keys"])

    assert finds(path="n", op="exists")
    assert finds(path="m.x", op="exists")
    assert not finds(path="n.x", op="exists")
    assert not any(finds(path="n", op=op, value=0) for op in ("==", "!=", "<", ">="))


def test_a_cell_may_not_grow_over_the_limit_by_an_update(api: Api) -> None:
    insert(api, {"one": "x" * 40_000}, {})
    before = api.dump()
    body = {"keys": ["a"], "custom_meta": [{"two": "x" * 40_000}], "custom_meta_mode": "update"}
    refused(api.send("PATCH", "custom-meta", body), 422, "invalid-request", "after the update", "custom_meta[0]")
    assert api.dump() == before
    patch(api, {"one": "y" * 40_000}, {"custom_meta_mode": "update"})
