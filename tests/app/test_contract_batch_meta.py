"""Batch meta, columns and field schemas as the contract has them, over HTTP; reading consumes nothing."""

from typing import Any

import pytest

from tests.columns import in_full

from .service import Api, refused

ALL = ["keys", "group_ids", "field_schema", "custom_meta", "backend_meta", "field_status"]
FAR = 2**62


def read(api: Api, **body: Any) -> Any:
    return api.ok("POST", "batch-meta", body)


def write(api: Api, keys: list[str], **schema: Any) -> Any:
    """One field named f."""
    return api.send("POST", "production", {"keys": keys, "create": True, "field_schema": {"f": schema}})


def test_the_example_of_the_contract(filled: Api) -> None:
    body = read(filled, fields=["ids"], include=["keys", "field_schema", "custom_meta", "backend_meta"])
    first = body["global_indexes"][0]
    assert body == {
        "partition_id": filled.name,
        "revision": filled.ok("GET", "")["revision"],
        "size": 2,
        "is_ready": True,
        "global_indexes": [first, first + 1],
        "fields": ["ids"],
        "missing_fields": [],
        "production_status": [1, 1],
        "keys": ["a", "b"],
        "field_schema": {"ids": {"kind": "tensor", "dtype": "int64", "ragged": True, "shapes": [[3], [5]]}},
        "custom_meta": [{"n": 1}, {"n": 2}],
        "backend_meta": {"ids": ["x", "y"]},
        "missing_keys": [],
        "next_cursor": None,
    }


def test_the_status_is_1_where_every_known_requested_field_is_produced(filled: Api) -> None:
    filled.produce(["b"], "more")
    body = read(filled, fields=["more", "unknown", "ids", "more"])
    assert body["production_status"] == [0, 1]
    assert (body["fields"], body["missing_fields"], body["is_ready"]) == (["more", "ids"], ["unknown"], False)
    assert read(filled, fields=["ids"])["is_ready"]
    assert read(filled)["production_status"] == [0, 1]


@pytest.mark.parametrize("fields", [[], ["unknown"]])
def test_no_field_requested_or_known_is_not_ready(filled: Api, fields: list[str]) -> None:
    body = read(filled, fields=fields)
    assert (body["production_status"], body["is_ready"], body["fields"]) == ([0, 0], False, [])


def test_no_sample_is_not_ready(filled: Api) -> None:
    body = read(filled, keys=[])
    assert (body["size"], body["is_ready"], body["production_status"]) == (0, False, [])


def test_order_and_repetitions_are_the_callers_and_absent_indexes_keep_their_place(filled: Api) -> None:
    a, b = read(filled)["global_indexes"]
    asked = [b, FAR, a, b]
    body = read(filled, global_indexes=asked, include=ALL)
    assert body["global_indexes"] == asked
    assert body["production_status"] == [1, 0, 1, 1]
    assert body["keys"] == ["b", None, "a", "b"]
    assert body["custom_meta"] == [{"n": 2}, None, {"n": 1}, {"n": 2}]
    assert body["backend_meta"] == {"ids": ["y", None, "x", "y"]}
    assert body["group_ids"] == ["g", None, "g", "g"]
    assert body["field_status"] == {"ids": [1, 0, 1, 1]}
    assert body["field_schema"]["ids"]["shapes"] == [[5], None, [3], [5]]


def test_an_index_of_another_partition_or_a_cleared_one_is_not_held(filled: Api) -> None:
    other = Api(filled.url)
    with other.http:
        foreign = other.insert("a")[0]
    cleared = filled.insert("gone")[0]
    filled.ok("POST", "samples/delete", {"keys": ["gone"]})
    body = read(filled, global_indexes=[foreign, cleared], include=["keys", "custom_meta"], expand=True)
    assert (body["production_status"], body["keys"], body["custom_meta"]) == ([0, 0], [None, None], [None, None])


def test_a_held_sample_without_custom_meta_has_an_empty_object(api: Api) -> None:
    api.insert("a", "b")
    assert read(api, keys=["a"])["custom_meta"] == [{}]


def test_include_picks_columns_and_keys_are_there_only_if_any_sample_has_one(api: Api) -> None:
    api.ok("POST", "samples", {"count": 1})
    default = {"field_schema", "custom_meta", "backend_meta"}
    assert set(read(api)) & set(ALL) == default
    api.insert("a")
    assert set(read(api)) & set(ALL) == {*default, "keys"}
    assert set(read(api, include=[])) & set(ALL) == set()
    for part in ALL:
        assert set(read(api, include=[part])) & set(ALL) == {part}


def test_keys_not_found_are_named_and_left_out(filled: Api) -> None:
    body = read(filled, keys=["nobody", "b"])
    assert (body["missing_keys"], body["keys"], body["size"]) == (["nobody"], ["b"], 1)


def test_strict_refuses_what_is_missing(filled: Api) -> None:
    a = read(filled)["global_indexes"][0]
    assert read(filled, fields=["ids"], keys=["a"], strict=True)["size"] == 1
    problem = refused(filled.send("POST", "batch-meta", {"keys": ["a", "no"], "strict": True}), 404, "key-not-found")
    assert problem["keys"] == ["no"]
    body = {"global_indexes": [a, FAR], "strict": True}
    assert refused(filled.send("POST", "batch-meta", body), 404, "sample-not-found")["global_indexes"] == [FAR]
    body = {"fields": ["ids", "no"], "strict": True}
    assert refused(filled.send("POST", "batch-meta", body), 404, "field-not-found")["fields"] == ["no"]


def test_equal_values_are_const_and_expand_asks_for_arrays(api: Api) -> None:
    meta = {"custom_meta": {"const": {"const": 1}}, "backend_meta": {"f": {"const": "1"}}, "group_ids": {"const": 7}}
    schema = {"f": {"dtype": "int64", "lengths": {"const": 3}}}
    api.ok("POST", "production", {"keys": ["a", "b"], "create": True, "field_schema": schema, **meta})
    body = read(api, include=ALL, compact=True)
    assert body["custom_meta"] == {"const": {"const": 1}}
    assert body["backend_meta"] == {"f": {"const": "1"}}
    assert body["group_ids"] == {"const": 7}
    assert body["field_status"] == {"f": {"const": 1}}
    assert body["field_schema"]["f"]["lengths"] == {"const": 3}
    assert read(api)["field_schema"]["f"]["shapes"] == {"const": [3]}
    plain = read(api, include=ALL, compact=True, expand=True)
    assert plain["custom_meta"] == [{"const": 1}, {"const": 1}]
    assert plain["backend_meta"] == {"f": ["1", "1"]}
    assert (plain["group_ids"], plain["field_status"]) == ([7, 7], {"f": [1, 1]})
    assert plain["field_schema"]["f"]["lengths"] == [3, 3]


def test_one_row_is_never_const(api: Api) -> None:
    api.produce(["a"], "n", backend_meta={"n": [{"const": 1}]}, custom_meta=[{"const": 1}])
    body = read(api)
    assert (body["custom_meta"], body["backend_meta"]) == ([{"const": 1}], {"n": [{"const": 1}]})


def test_equal_columns_of_several_fields_are_told_once_to_those_who_ask(api: Api) -> None:
    schema = {name: {"dtype": dtype, "lengths": [2, 3]} for name, dtype in (("a", "int64"), ("b", "bool"))}
    backend = {"a": [{"at": 1}, {"at": 2}], "b": [{"at": 1}, {"at": 2}], "c": {"const": "1"}, "d": {"const": "1"}}
    schema |= {name: {"dtype": "int8", "shape": [4]} for name in "cd"}
    api.ok(
        "POST",
        "production",
        {"keys": ["x", "y"], "create": True, "field_schema": schema, "backend_meta": backend},
    )
    plain, told = read(api, compact=True), read(api, compact=True, share_columns=True)
    assert told["field_schema"]["b"] == {**plain["field_schema"]["b"], "lengths": {"same_as": "a"}}
    assert (told["backend_meta"]["b"], told["backend_meta"]["d"]) == ({"same_as": "a"}, {"same_as": "c"})
    assert in_full(told) == plain == read(api, compact=True, share_columns=False)
    expanded = read(api, expand=True, share_columns=True)
    assert (expanded["backend_meta"]["c"], expanded["backend_meta"]["d"]) == (["1", "1"], {"same_as": "c"})
    assert expanded["field_schema"]["b"]["shapes"] == {"same_as": "a"}
    one = {"keys": ["x"], "compact": True}
    assert read(api, **one, share_columns=True) == read(api, **one)
    claimed = api.claim("a", "b", size=2, compact=True, share_columns=True).json()["batch"]
    assert claimed["field_schema"]["b"]["lengths"] == claimed["backend_meta"]["b"] == {"same_as": "a"}


FORMS = [
    ({"dtype": "float32", "shape": [1024]}, {"dtype": "float32", "ragged": False, "shape": [1024]}),
    ({"kind": "tensor", "dtype": "bool", "shape": []}, {"dtype": "bool", "ragged": False, "shape": []}),
    ({"dtype": "int8", "shape": [0, 2**31 - 1]}, {"dtype": "int8", "ragged": False, "shape": [0, 2**31 - 1]}),
    ({"dtype": "int8", "shape": [1] * 8}, {"dtype": "int8", "ragged": False, "shape": [1] * 8}),
    ({"dtype": "bfloat16", "lengths": [2, 3]}, {"dtype": "bfloat16", "ragged": True, "shapes": [[2], [3]]}),
    ({"dtype": "int64", "shapes": [[1, 2], [3, 2]]}, {"dtype": "int64", "ragged": True, "shapes": [[1, 2], [3, 2]]}),
    ({"dtype": "int64", "ragged": True, "shape": [5]}, {"dtype": "int64", "ragged": True, "shapes": {"const": [5]}}),
]


@pytest.mark.parametrize(("given", "out"), FORMS, ids=lambda form: str(form)[:60])
def test_a_schema_comes_out_in_one_form_which_is_accepted_in(api: Api, given: Any, out: Any) -> None:
    write(api, ["a", "b"], **given).raise_for_status()
    assert read(api)["field_schema"]["f"] == {"kind": "tensor", **out}
    before = api.dump()
    write(api, ["a", "b"], kind="tensor", **out).raise_for_status()
    assert api.dump() == before


def test_an_object_has_a_kind_alone(api: Api) -> None:
    write(api, ["a", "b"], kind="object").raise_for_status()
    assert read(api)["field_schema"]["f"] == {"kind": "object"}


def test_compact_gives_lengths_for_rank_1_alone_and_null_for_a_sample_that_lacks_the_field(api: Api) -> None:
    write(api, ["a", "b"], dtype="int64", lengths=[2, 2]).raise_for_status()
    api.insert("c")
    schema = read(api, compact=True)["field_schema"]["f"]
    assert (schema["lengths"], "shapes" in schema) == ([2, 2, None], False)
    assert read(api)["field_schema"]["f"]["shapes"] == [[2], [2], None]
    api.ok("POST", "production", {"keys": ["a"], "field_schema": {"g": {"dtype": "int64", "shapes": [[1, 2]]}}})
    assert read(api, compact=True, fields=["g"])["field_schema"]["g"]["shapes"] == [[1, 2], None, None]


def test_a_field_becomes_ragged_when_two_samples_differ(api: Api) -> None:
    write(api, ["a"], dtype="int64", shape=[2]).raise_for_status()
    write(api, ["b"], dtype="int64", shape=[3]).raise_for_status()
    assert read(api)["field_schema"]["f"]["shapes"] == [[2], [3]]
    write(api, ["b"], dtype="int64", shape=[2]).raise_for_status()
    assert read(api)["field_schema"]["f"]["ragged"]


def test_a_declared_field_without_shape_is_null_until_known_and_ragged_when_one_differs_from_it(api: Api) -> None:
    fields = {"f": {"dtype": "int64"}, "g": {"dtype": "int64", "shape": [4]}}
    api.ok("PUT", "", {"fields": fields})
    api.insert("a", "b")
    schema = read(api)["field_schema"]
    assert (schema["f"]["shape"], schema["g"]["shape"]) == (None, [4])
    body = {"keys": ["a", "b"], "field_schema": {name: {"dtype": "int64", "shape": [3]} for name in fields}}
    api.ok("POST", "production", body)
    schema = read(api)["field_schema"]
    assert (schema["f"]["ragged"], schema["g"]["ragged"]) == (False, True)


def test_the_last_sample_takes_an_undeclared_field_with_it(api: Api) -> None:
    api.ok("PUT", "", {"fields": {"kept": {"dtype": "int64"}}})
    api.produce(["a", "b"], "kept", "gone")
    api.ok("POST", "samples/delete", {"keys": ["a", "b"]})
    fields = api.ok("GET", "")["fields"]
    assert fields == {"kept": {"kind": "tensor", "dtype": "int64", "ragged": False, "shape": None, "produced": 0}}
    api.ok("POST", "production", {"keys": ["c"], "create": True, "field_schema": {"gone": {"kind": "object"}}})


def test_the_same_body_asks_each_partition_for_what_it_holds_then(filled: Api) -> None:
    body = {"fields": ["ids"], "include": ["keys"]}
    assert read(filled, **body)["keys"] == ["a", "b"]
    filled.insert("c")
    assert read(filled, **body)["keys"] == ["a", "b", "c"]
    assert read(filled, **body, keys=["b"])["keys"] == ["b"]


@pytest.mark.parametrize("compact", [True, False])
def test_a_name_with_a_percent_sign_is_told_as_it_is(filled: Api, compact: bool) -> None:
    schema = {"%d": {"dtype": "int64", "lengths": [3]}, "100%": {"dtype": "int64", "shape": [2]}}
    filled.ok("POST", "production", {"keys": ["z"], "create": True, "field_schema": schema})
    schema = read(filled, fields=["%d", "100%"], keys=["z"], compact=compact)["field_schema"]
    assert schema["100%"]["shape"] == [2]
    assert read(filled, fields=["%d", "100%"], keys=["a", "z"], compact=compact)["field_schema"].keys() == schema.keys()
    sizes = {"lengths": [3]} if compact else {"shapes": [[3]]}
    assert schema["%d"] == {"kind": "tensor", "dtype": "int64", "ragged": True, **sizes}
