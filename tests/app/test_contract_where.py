"""`where` as the contract has it, over HTTP: in claims, explain, key lists and deletes."""

import json
from typing import Any
from urllib.parse import quote

from .service import Api, refused

NEW = [{"path": "version", "op": ">=", "value": 8}]


def tagged(api: Api, **versions: Any) -> dict[str, int]:
    """Ready rows by key, with these versions."""
    keys = list(versions)
    metas = [{"version": version} for version in versions.values()]
    indexes = api.produce(keys, "n", custom_meta=metas)["global_indexes"]
    return dict(zip(keys, indexes, strict=True))


def keys(reply: Any) -> list[str]:
    assert reply.status_code == 201, reply.text
    found: list[str] = reply.json()["batch"]["keys"]
    return found


def blocking(reply: Any, reason: str) -> Any:
    return {line["reason"]: line for line in reply["blocking"]}[reason]


def listed(api: Api, where: Any, more: str = "") -> list[str]:
    """All keys, page after page."""
    found: list[str] = []
    query = f"{more}&where={quote(json.dumps(where))}" if where is not None else more
    cursor = ""
    while cursor is not None:
        page = api.ok("GET", f"keys?{query}{cursor}")
        found += [line["key"] for line in page["keys"]]
        cursor = None if page["next_cursor"] is None else f"&cursor={page['next_cursor']}"
    return found


def test_a_claim_takes_only_rows_that_pass(api: Api) -> None:
    tagged(api, a=7, b=8, c="9", d=9.5)
    assert keys(api.claim("n", size=2, where=NEW)) == ["b", "d"]
    reply = api.claim("n", where=NEW).json()
    assert (reply["claim"], reply["ready"], reply["done"]) == (None, 0, False)
    assert (blocking(reply, "filtered")["count"], len(blocking(reply, "filtered")["global_indexes"])) == (2, 2)
    assert keys(api.claim("n", size=2, where=[])) == ["a", "c"]


def test_explain_says_what_a_claim_with_where_would_find(api: Api) -> None:
    rows = tagged(api, a=7, b=8)
    body = {"fields": ["n"], "batch_size": 2, "where": NEW}
    reply = api.ok("POST", "tasks/t/explain", body)
    assert (reply["ready"], reply["wanted"], reply["total"]) == (1, 2, 2)
    assert blocking(reply, "filtered")["global_indexes"] == [rows["a"]]


def test_a_path_is_dotted_or_an_array_of_members(api: Api) -> None:
    api.produce(["a", "b"], "n", custom_meta=[{"run": {"id": "x"}}, {"run.id": "x", '"\\\n': "x"}])
    for path, key in (("run.id", "a"), (["run", "id"], "a"), (["run.id"], "b"), (['"\\\n'], "b")):
        assert listed(api, [{"path": path, "op": "==", "value": "x"}]) == [key]


def test_a_patch_of_custom_meta_lets_a_row_pass_and_keeps_another_back(api: Api) -> None:
    tagged(api, a=8, b=7)
    assert api.claim("n", size=2, where=NEW).json()["claim"] is None
    api.ok("PATCH", "custom-meta", {"keys": ["a", "b"], "custom_meta": [{"version": None}, {"version": 9}]})
    assert keys(api.claim("n", where=NEW)) == ["b"]


def test_of_a_group_every_member_must_pass(api: Api) -> None:
    metas = [{"version": version} for version in (8, 8, 9, 7)]
    api.produce(["a", "b", "c", "d"], "n", group_ids=["x", "y", "x", "y"], custom_meta=metas)
    pairs = {"sampler": {"name": "grpo_group", "n_samples_per_prompt": 2}, "where": NEW}
    assert api.claim("n", size=4, **pairs).json()["claim"] is None
    assert keys(api.claim("n", size=2, **pairs)) == ["a", "c"]


def test_the_last_rows_that_pass_go_out_of_a_sealed_partition(api: Api) -> None:
    tagged(api, a=8, b=7, c=9)
    api.insert("d", custom_meta=[{"version": 7}])
    api.ok("POST", "seal")
    assert keys(api.claim("n", size=5, where=NEW)) == ["a", "c"]
    assert api.claim("n", size=5, where=NEW).json()["claim"] is None
    assert api.claim("n", size=5).json()["claim"] is None  # d is not ready


def test_keys_are_listed_by_where_and_prefix(api: Api) -> None:
    tagged(api, a1=7, a2=8, b1=9)
    assert listed(api, NEW) == ["a2", "b1"]
    assert listed(api, NEW, "prefix=a") == ["a2"]
    assert listed(api, NEW, "limit=1") == ["a2", "b1"]
    assert listed(api, []) == ["a1", "a2", "b1"]
    assert listed(api, [{"path": "version", "op": "exists", "value": False}]) == []


def test_followed_keys_are_told_when_they_pass_and_when_they_no_longer_do(api: Api) -> None:
    tagged(api, a=7, b=8)
    query = f"keys?where={quote(json.dumps(NEW))}&since_revision="
    first = api.ok("GET", f"{query}0")
    assert [line["key"] for line in first["keys"]] == ["b"]
    api.ok("PATCH", "custom-meta", {"keys": ["a", "b"], "custom_meta": [{"version": 9}, {"version": 1}]})
    then = api.ok("GET", f"{query}{first['revision']}")
    assert ([line["key"] for line in then["keys"]], then["removed"]) == (["a"], ["b"])


def test_a_delete_takes_of_the_named_rows_those_that_pass(api: Api) -> None:
    tagged(api, a=7, b=8, c=9)
    refused(api.send("POST", "samples/delete", {"keys": ["a"], "where": []}), 422, "invalid-request", "body.where")
    assert api.ok("POST", "samples/delete", {"keys": ["a", "b", "nobody"], "where": NEW})["cleared"] == 1
    assert api.ok("POST", "samples/delete", {"keys": ["a", "b"], "where": NEW})["cleared"] == 0
    assert listed(api, None) == ["a", "c"]
