"""Insert, produce, custom and backend meta, delete of samples, as the contract has them, over HTTP."""

from typing import Any

import pytest

from .service import Api, refused

N = {"n": {"dtype": "int64", "shape": []}}


def meta(api: Api, key: str) -> Any:
    return api.ok("POST", "batch-meta", {"keys": [key], "include": ["custom_meta"]})["custom_meta"][0]


def patch(api: Api, *cells: Any, keys: list[str] | None = None) -> Any:
    return api.ok("PATCH", "custom-meta", {"keys": keys or ["a"], "custom_meta": list(cells)})


def test_insert_makes_the_partition_and_answers_batch_meta(api: Api) -> None:
    body = {"keys": ["a", "b"], "group_ids": {"const": "g"}, "custom_meta": {"const": {"step": 41}}}
    reply = api.send("POST", "samples", body)
    out = reply.json()
    assert reply.status_code == 201
    assert (out["created"], out["size"], out["is_ready"], out["production_status"]) == (2, 2, False, [0, 0])
    assert (out["keys"], out["custom_meta"], out["fields"]) == (["a", "b"], {"const": {"step": 41}}, [])
    assert api.ok("POST", "samples", {**body, "expand": True})["custom_meta"] == [{"step": 41}] * 2


def test_count_makes_rows_without_keys(api: Api) -> None:
    out = api.ok(
        "POST", "samples", {"count": 3, "custom_meta": [{"i": 0}, {"i": 1}, {"i": 2}], "group_ids": [1, "1", None]}
    )
    first = out["global_indexes"][0]
    assert out["global_indexes"] == [first, first + 1, first + 2]
    assert ("keys" in out, out["created"]) == (False, 3)
    body = api.ok("POST", "batch-meta", {"include": ["group_ids"]})
    assert body["group_ids"] == [1, "1", None]


def test_a_key_that_exists_keeps_its_index_and_its_meta_is_merged(api: Api) -> None:
    a = api.insert("a", custom_meta=[{"x": 1}])[0]
    out = api.ok("POST", "samples", {"keys": ["b", "a"], "custom_meta": [{"y": 1}, {"y": 2}]})
    assert (out["global_indexes"][1], out["created"]) == (a, 1)
    assert meta(api, "a") == {"x": 1, "y": 2}


def test_indexes_only_grow_and_are_unique_in_the_service(api: Api) -> None:
    other = Api(api.url)
    with other.http:
        indexes = [api.insert("a")[0], other.insert("a")[0]]
        api.ok("POST", "samples/delete", {"keys": ["a"]})
        indexes += [api.insert("a")[0], other.insert("b")[0]]
    assert indexes == sorted(set(indexes))


def test_most_rows_of_one_call(api: Api) -> None:
    out = api.ok("POST", "samples", {"count": 65_536})
    assert (out["size"], out["custom_meta"]) == (65_536, {"const": {}})


def test_produce_does_all_in_one_step(api: Api) -> None:
    body = {
        "keys": ["b", "a"],
        "create": True,
        "field_schema": N,
        "backend_meta": {"n": ["y", {"at": 1}]},
        "custom_meta": [{"r": 1}, None],
        "group_ids": ["g", "g"],
    }
    out = api.ok("POST", "production", body)
    assert (out["created"], len(out["global_indexes"]), set(out)) == (
        2,
        2,
        {"partition_id", "revision", "global_indexes", "created"},
    )
    assert api.ok("POST", "production", body) == out | {"created": 0}
    seen = api.ok("POST", "batch-meta", {"keys": ["a", "b"], "include": ["backend_meta", "custom_meta", "group_ids"]})
    assert seen["production_status"] == [1, 1]
    assert (seen["backend_meta"], seen["custom_meta"]) == ({"n": [{"at": 1}, "y"]}, [{}, {"r": 1}])


def test_rows_are_written_in_the_callers_order(api: Api) -> None:
    a, b = api.insert("a", "b")
    body = {"global_indexes": [b, a], "field_schema": N, "backend_meta": {"n": ["of b", "of a"]}}
    assert api.ok("POST", "production", body)["global_indexes"] == [b, a]
    assert api.ok("POST", "backend-meta", {"keys": ["a", "b"]})["backend_meta"]["n"] == ["of a", "of b"]


def test_no_field_writes_rows_that_have_only_meta(api: Api) -> None:
    body = {"keys": ["a"], "create": True, "field_schema": {}, "custom_meta": [{"only": "meta"}]}
    assert api.ok("POST", "production", body)["created"] == 1
    assert (meta(api, "a"), api.ok("GET", "")["num_fields"]) == ({"only": "meta"}, 0)


def test_a_field_written_again_without_backend_meta_gets_null(api: Api) -> None:
    api.produce(["a"], "n", backend_meta={"n": ["x"]})
    api.produce(["a"], "n")
    assert api.ok("POST", "backend-meta", {})["backend_meta"]["n"] == [None]


def test_create_makes_an_absent_partition_and_without_it_there_must_be_one(api: Api) -> None:
    body = {"keys": ["a"], "field_schema": N}
    refused(api.send("POST", "production", body), 404, "partition-not-found", "create: true")
    api.ok("PUT", "")
    assert refused(api.send("POST", "production", body), 404, "key-not-found")["keys"] == ["a"]
    assert api.ok("POST", "production", {**body, "create": True})["created"] == 1


def test_an_index_not_given_out_is_404_and_one_not_held_here_410(api: Api) -> None:
    a, b = api.insert("a", "b")
    api.ok("POST", "samples/delete", {"keys": ["a"]})
    other = Api(api.url)
    with other.http:
        foreign = other.insert("x")[0]
    for index, status, code in (
        (2**62, 404, "sample-not-found"),
        (a, 410, "sample-cleared"),
        (foreign, 410, "sample-cleared"),
    ):
        for method, path, more in (
            ("POST", "production", {"field_schema": N}),
            ("PATCH", "custom-meta", {"custom_meta": {"const": {"x": 1}}}),
        ):
            reply = api.send(method, path, {"global_indexes": [b, index], **more})
            assert refused(reply, status, code)["global_indexes"] == [index]
    assert api.ok("GET", "")["num_fields"] == 0


def test_every_cleared_sample_is_named(api: Api) -> None:
    gone = api.ok("POST", "samples", {"count": 30})["global_indexes"]
    api.ok("POST", "samples/delete", {"global_indexes": gone})
    problem = refused(
        api.send("POST", "production", {"global_indexes": gone, "field_schema": N}), 410, "sample-cleared"
    )
    assert problem["global_indexes"] == gone


def test_nothing_of_a_conflicting_call_is_applied(filled: Api) -> None:
    before = filled.dump()
    schema = {"new": {"dtype": "int64", "shape": []}, "ids": {"dtype": "int64", "shape": []}}
    body = {"keys": ["a", "z"], "create": True, "field_schema": schema, "custom_meta": {"const": {"x": 1}}}
    assert refused(filled.send("POST", "production", body), 409, "dtype-conflict")["fields"] == ["ids"]
    body["field_schema"] = {"new": schema["new"]}
    body["group_ids"] = ["another", "h"]
    refused(filled.send("POST", "production", body), 409, "group-conflict")
    assert filled.dump() == before


def test_a_group_is_set_once_and_may_be_said_again(api: Api) -> None:
    api.insert("a", "b", group_ids=[7, None])
    api.insert("a", "b", group_ids=[7, "late"])
    problem = refused(api.send("POST", "samples", {"keys": ["a"], "group_ids": ["7"]}), 409, "group-conflict")
    assert problem["global_indexes"] == api.ok("POST", "batch-meta", {"keys": ["a"]})["global_indexes"]
    assert api.ok("POST", "batch-meta", {"include": ["group_ids"]})["group_ids"] == [7, "late"]


# RFC 7396, appendix A: target, patch, result; all objects, as the contract has it
MERGES = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": 1}, {"a": 1}, {"e": 1, "a": 1}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ({}, {"a": None, "b": {"c": None, "d": 1}}, {"b": {"d": 1}}),
    ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": 1}}),
    ({"a": 1.5, "big": 2**64 - 1}, {"small": -(2**63)}, {"a": 1.5, "big": 2**64 - 1, "small": -(2**63)}),
]


@pytest.mark.parametrize(("target", "change", "result"), MERGES, ids=lambda part: str(part)[:40])
def test_custom_meta_is_merged_as_rfc_7396_says(api: Api, target: Any, change: Any, result: Any) -> None:
    api.insert("a", custom_meta=[target])
    patch(api, change)
    assert meta(api, "a") == result


def test_a_first_patch_is_a_patch_too(api: Api) -> None:
    api.insert("a", custom_meta=[{"x": None, "y": {"z": None}}])
    assert meta(api, "a") == {"y": {}}


def test_null_in_the_column_leaves_a_row_alone(api: Api) -> None:
    api.insert("a", "b", custom_meta={"const": {"x": 1}})
    reply = patch(api, None, {"x": 2}, keys=["a", "b"])
    assert set(reply) == {"partition_id", "revision"}
    assert (meta(api, "a"), meta(api, "b")) == ({"x": 1}, {"x": 2})


def test_writers_of_different_members_lose_nothing(api: Api) -> None:
    a = api.insert("a")[0]
    for i in range(20):
        api.ok("PATCH", "custom-meta", {"global_indexes": [a], "custom_meta": [{f"m{i}": i}]})
    assert meta(api, "a") == {f"m{i}": i for i in range(20)}


def test_backend_meta_is_set_for_samples_that_exist_and_makes_nothing_ready(filled: Api) -> None:
    filled.insert("c")
    out = filled.ok("PATCH", "backend-meta", {"keys": ["c", "a"], "backend_meta": {"ids": [{"moved": 1}, [0]]}})
    a, b, c = filled.ok("POST", "batch-meta", {})["global_indexes"]
    assert out["global_indexes"] == [c, a]
    body = filled.ok("POST", "batch-meta", {})
    assert (body["backend_meta"]["ids"], body["production_status"]) == ([[0], "y", {"moved": 1}], [1, 1, 0])
    assert refused(
        filled.send("PATCH", "backend-meta", {"global_indexes": [b], "backend_meta": {"no": ["x"]}}),
        404,
        "field-not-found",
    )["fields"] == ["no"]


def test_delete_takes_what_is_there_and_skips_the_rest(api: Api) -> None:
    assert api.ok("POST", "samples/delete", {"keys": ["a"]})["cleared"] == 0
    a, b, c = api.insert("a", "b", "c")
    out = api.ok("POST", "samples/delete", {"global_indexes": [a, 2**62, c]})
    assert (out["cleared"], out["skipped_clearing"]) == (2, [])
    assert api.ok("POST", "samples/delete", {"global_indexes": [a, c]})["cleared"] == 0
    assert api.ok("POST", "samples/delete", {"keys": ["a", "b", "nobody"]})["cleared"] == 1
    assert api.ok("GET", "")["num_samples"] == 0
    assert api.insert("b")[0] > c > b


def test_no_reply_is_made_unreadable_by_what_was_accepted(api: Api) -> None:
    cells = [
        '{"a":"\\u0000\\u007f\\u2028"}',
        '{"\\ud83d\\ude00":"ü"}',
        '{"":{"":[]}}',
        '{"n":1E2,"m":-0.0}',
        '{"a":{"a":2}}',
    ]
    body = '{"keys":["a","b","c","d","e"],"custom_meta":[' + ",".join(cells) + "]}"
    reply = api.send("POST", "samples", content=body.encode(), headers={"Content-Type": "application/json"})
    assert reply.status_code == 201
    assert api.ok("GET", "batch-meta")["custom_meta"] == reply.json()["custom_meta"]
    assert [line["custom_meta"] for line in api.ok("GET", "keys")["keys"]] == reply.json()["custom_meta"]
