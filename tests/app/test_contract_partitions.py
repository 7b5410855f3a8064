"""Partitions as the contract has them, over HTTP: made, given settings, listed, deleted; ETag and If-Match."""

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest

from .service import Api, refused

SETTINGS: dict[str, Any] = {
    "expected_samples": 4,
    "max_samples": 8,
    "max_attempts": 3,
    "fields": {"ids": {"dtype": "int64", "ragged": True, "shape": [5]}, "uid": {"kind": "object"}},
}


def test_put_makes_a_partition_with_its_settings_and_get_answers_the_same(api: Api) -> None:
    made = api.send("PUT", "", SETTINGS)
    assert made.status_code == 201
    body = made.json()
    assert api.ok("GET", "") == body
    assert datetime.fromisoformat(body.pop("created_at")).utcoffset() == timedelta(0)
    assert body.pop("revision") > 0
    assert body == {
        "partition_id": api.name,
        "state": "open",
        "expected_samples": 4,
        "max_samples": 8,
        "max_attempts": 3,
        "num_samples": 0,
        "num_fields": 2,
        "fields": {
            "ids": {"kind": "tensor", "dtype": "int64", "ragged": True, "produced": 0},
            "uid": {"kind": "object", "produced": 0},
        },
        "tasks": {},
    }


def test_settings_have_defaults(api: Api) -> None:
    body = api.ok("PUT", "")
    assert (body["expected_samples"], body["max_samples"], body["max_attempts"]) == (None, None, 5)


def test_the_same_settings_again_are_200_and_no_change(api: Api) -> None:
    first = api.ok("PUT", "", SETTINGS)
    again = api.send("PUT", "", SETTINGS)
    assert (again.status_code, again.json()) == (200, first)


def test_a_partition_without_settings_takes_them_later(api: Api) -> None:
    api.produce(["a"], "n")
    assert api.send("PUT", "", {}).status_code == 200
    body = api.send("PUT", "", {"expected_samples": 2}).json()
    assert (body["expected_samples"], body["num_samples"]) == (2, 1)


def test_no_settings_where_there_are_some_are_other_settings(api: Api) -> None:
    api.ok("PUT", "", SETTINGS)
    refused(api.send("PUT", "", {}), 409, "partition-conflict", "other settings")
    refused(api.send("PUT", "", SETTINGS | {"max_samples": 9}), 409, "partition-conflict")
    refused(api.send("PUT", "", SETTINGS | {"fields": {}}), 409, "partition-conflict")


def test_fields_and_tasks_are_counted(api: Api) -> None:
    api.produce(["a", "b"], "n")
    api.produce(["c"], "m")
    assert api.claim("n").status_code == 201
    assert api.claim("m", task="u", size=2).status_code == 200
    body = api.ok("GET", "")
    assert {name: field["produced"] for name, field in body["fields"].items()} == {"n": 2, "m": 1}
    assert body["tasks"] == {"t": {"consumed": 1, "leased": 0, "dead": 0}}
    assert (body["num_samples"], body["num_fields"]) == (3, 2)


def test_a_partition_that_never_was_is_404_and_a_deleted_one_410(api: Api) -> None:
    refused(api.send("GET", ""), 404, "partition-not-found", "PUT or insert")
    api.ok("PUT", "")
    api.ok("DELETE", "")
    for path in ("", "batch-meta", "keys", "backend-meta", "tasks/t/consumption", "production?fields=n"):
        refused(api.send("GET", path), 410, "partition-cleared", "PUT or insert")


def test_delete_says_how_many_samples_went_and_zero_afterwards(api: Api) -> None:
    assert api.ok("DELETE", "")["cleared_samples"] == 0
    api.insert("a", "b", "c")
    api.ok("POST", "samples/delete", {"keys": ["a"]})
    assert api.ok("DELETE", "")["cleared_samples"] == 2
    assert api.ok("DELETE", "")["cleared_samples"] == 0


def test_only_put_and_insert_make_a_deleted_partition_anew(api: Api) -> None:
    first = api.insert("a")[0]
    deleted = api.ok("DELETE", "")["revision"]
    schema = {"n": {"dtype": "int64", "shape": []}}
    body = {"keys": ["a"], "create": True, "field_schema": schema}
    refused(api.send("POST", "production", body), 410, "partition-cleared")
    assert api.insert("a")[0] > first
    assert api.ok("GET", "")["revision"] > deleted
    api.ok("DELETE", "")
    assert api.send("PUT", "").status_code == 201
    assert api.ok("GET", "")["num_samples"] == 0


def test_a_partition_has_an_etag_that_changes_with_its_revision(api: Api) -> None:
    put = api.send("PUT", "")
    got = api.send("GET", "")
    assert got.headers["etag"] == put.headers["etag"]
    assert got.headers["cache-control"] == "no-cache"
    assert got.headers["vary"] == "Accept"
    assert put.headers["cache-control"] == "no-store"
    api.insert("a")
    assert api.send("GET", "").headers["etag"] != got.headers["etag"]


@pytest.mark.parametrize("form", ["{tag}", '"other", {tag}', 'W/"other",{tag}', "*"])
def test_delete_happens_at_the_state_that_if_match_names(api: Api, form: str) -> None:
    tag = api.send("PUT", "").headers["etag"]
    header = {"If-Match": form.format(tag=tag)}
    assert api.send("DELETE", "", headers=header).status_code == 200


def test_delete_at_another_state_is_412_and_nothing_is_gone(api: Api) -> None:
    tag = api.send("PUT", "").headers["etag"]
    api.insert("a")
    refused(api.send("DELETE", "", headers={"If-Match": tag}), 412, "precondition-failed", "revision")
    now = api.send("GET", "").headers["etag"]
    for form in (f"W/{now}", f"w/{now}", f'"other", W/{now}', now.strip('"'), f"{now}x", ""):
        refused(api.send("DELETE", "", headers={"If-Match": form}), 412, "precondition-failed", "weak")
    assert api.ok("GET", "")["num_samples"] == 1


def test_partitions_are_listed_in_the_order_they_were_made(api: Api) -> None:
    names = [f"{api.name}.{name}" for name in ("z", "a", "m", "b", "y")]
    for name in names:
        api.ok("PUT", f"/v1/partitions/{name}")
    seen: list[str] = []
    cursor = ""
    while cursor is not None:
        page = api.ok("GET", f"/v1/partitions?prefix={api.name}.&limit=2{cursor and f'&cursor={cursor}'}")
        seen += [line["partition_id"] for line in page["partitions"]]
        cursor = page["next_cursor"]
    assert seen == names
    assert set(page) == {"partitions", "next_cursor"}
    assert set(page["partitions"][0]) == {
        "partition_id",
        "state",
        "num_samples",
        "num_fields",
        "revision",
        "created_at",
    }


def test_a_partition_there_throughout_is_listed_once_whatever_else_comes_and_goes(api: Api) -> None:
    for name in "abcd":
        api.ok("PUT", f"/v1/partitions/{api.name}.{name}")
    first = api.ok("GET", f"/v1/partitions?prefix={api.name}.&limit=2")
    api.ok("DELETE", f"/v1/partitions/{api.name}.b")
    api.ok("DELETE", f"/v1/partitions/{api.name}.a")
    api.ok("PUT", f"/v1/partitions/{api.name}.a")
    rest = api.ok("GET", f"/v1/partitions?prefix={api.name}.&cursor={first['next_cursor']}")
    assert [line["partition_id"][-1] for line in rest["partitions"]] == ["c", "d", "a"]


@pytest.mark.parametrize("name", ["train@step_12", "a b", "ä", "日本語", "a%b", "a?b", "a#b", "n" * 200, "...", "+"])
def test_any_other_name_is_kept_as_it_is(api: Api, name: str) -> None:
    path = f"/v1/partitions/{quote(name, safe='')}"
    try:
        assert api.ok("PUT", path)["partition_id"] == name
        assert api.ok("GET", path)["partition_id"] == name
    finally:
        api.ok("DELETE", path)


def test_a_full_partition_turns_new_samples_away_for_now(api: Api) -> None:
    api.ok("PUT", "", {"max_samples": 2})
    api.insert("a", "b")
    reply = api.send("POST", "samples", {"keys": ["a", "c"]})
    problem = refused(reply, 429, "too-many-samples", "2 of at most 2")
    assert problem["retryable"]
    assert int(reply.headers["retry-after"]) >= 1
    assert api.ok("GET", "")["num_samples"] == 2
    api.ok("POST", "samples/delete", {"keys": ["a"]})
    assert len(api.insert("c")) == 1


@pytest.mark.parametrize("verb", ["samples", "production"])
def test_more_new_samples_than_ever_fit_are_not_to_be_sent_again(api: Api, verb: str) -> None:
    api.ok("PUT", "", {"max_samples": 2})
    api.insert("a")
    more = {} if verb == "samples" else {"create": True, "field_schema": {}}
    for keys, is_retryable in ((["x", "y", "z"], False), (["a", "x", "y"], True)):
        reply = api.send("POST", verb, {"keys": keys, **more})
        problem = reply.json()
        assert (reply.status_code, problem["code"], problem["retryable"]) == (429, "too-many-samples", is_retryable)
        assert ("retry-after" in reply.headers) == is_retryable
        assert ("never fits: send at most 2 in a call" in problem["detail"]) != is_retryable
    assert api.ok("GET", "")["num_samples"] == 1
