"""Reads come in pages, and GETs with a tag come again only when something changed, over HTTP."""

from itertools import chain
from typing import Any
from urllib.parse import quote

import pytest

from .service import Api, refused

KEYS = [f"k{i}" for i in range(7)]
LISTS = {
    "GET batch-meta": "global_indexes",
    "POST batch-meta": "global_indexes",
    "GET backend-meta": "global_indexes",
    "POST backend-meta": "global_indexes",
    "GET production": "global_indexes",
    "GET keys": "keys",
    "GET tasks/t/consumption": "global_indexes",
}


def page(api: Api, what: str, limit: int, cursor: str | None, **more: Any) -> Any:
    method, path = what.split(" ")
    asked = {"limit": limit, **({"cursor": cursor} if cursor else {}), **more}
    if method == "POST":
        return api.ok("POST", path, asked)
    return api.ok("GET", path, params=asked | ({"fields": "n"} if path == "production" else {}))


def listed(api: Api, what: str, **more: Any) -> list[list[Any]]:
    """Every page of three, until there is no cursor."""
    pages, cursor = [], None
    while True:
        body = page(api, what, 3, cursor, **more)
        pages.append(body[LISTS[what]])
        cursor = body["next_cursor"]
        if cursor is None:
            return pages


@pytest.mark.parametrize("what", LISTS)
def test_pages_hold_every_row_once_in_index_order(api: Api, what: str) -> None:
    indexes = api.produce(KEYS, "n")["global_indexes"]
    pages = listed(api, what)
    assert [len(rows) for rows in pages] == [3, 3, 1]
    rows = [row["global_index"] if isinstance(row, dict) else row for rows in pages for row in rows]
    assert rows == indexes


@pytest.mark.parametrize("what", LISTS)
def test_a_page_that_just_fits_has_no_next(api: Api, what: str) -> None:
    api.produce(KEYS[:3], "n")
    assert [len(rows) for rows in listed(api, what)] == [3]


@pytest.mark.parametrize("what", LISTS)
def test_rows_that_come_and_go_between_pages_move_no_other(api: Api, what: str) -> None:
    indexes = api.produce(KEYS, "n")["global_indexes"]
    first = page(api, what, 3, None)
    api.ok("POST", "samples/delete", {"keys": ["k0", "k3"]})
    api.produce(["late"], "n")
    second = page(api, what, 10, first["next_cursor"])[LISTS[what]]
    rows = [row["global_index"] if isinstance(row, dict) else row for row in second]
    assert rows[:3] == indexes[4:]
    assert len(rows) == 4


@pytest.mark.parametrize("what", ["POST batch-meta", "POST backend-meta"])
def test_a_selection_comes_in_pages_in_the_callers_order(api: Api, what: str) -> None:
    indexes = api.produce(KEYS, "n")["global_indexes"]
    asked = [*reversed(indexes), indexes[0]]
    assert list(chain(*listed(api, what, global_indexes=asked))) == asked
    assert list(chain(*listed(api, what, keys=[*KEYS[::-1], "nobody"]))) == asked[:-1]


def test_a_cursor_of_another_listing_is_refused(api: Api) -> None:
    api.produce(KEYS, "n")
    cursor = page(api, "GET keys", 3, None)["next_cursor"]
    refused(api.send("POST", "batch-meta", {"keys": KEYS, "cursor": cursor}), 422, "invalid-request", "next_cursor")
    refused(api.send("GET", f"/v1/partitions?cursor={cursor}"), 422, "invalid-request", "next_cursor")


@pytest.mark.parametrize(
    "query", ["limit=null", "limit=", "limit=1.5", "limit=%2B", "limit=0", "expand=null", "share_columns=2"]
)
def test_a_parameter_has_a_value_of_its_kind_or_is_left_out(filled: Api, query: str) -> None:
    name = query.partition("=")[0]
    refused(filled.send("GET", f"batch-meta?{query}"), 422, "invalid-request", f"query.{name}")


def test_keys_are_listed_by_prefix_with_their_meta_and_revision(api: Api) -> None:
    api.insert("7f_0", "7f_1", "8a_0", 'q"\\ü_1')
    revision = api.ok("PATCH", "custom-meta", {"keys": ["7f_1"], "custom_meta": [{"step": 41}]})["revision"]
    body = api.ok("GET", "keys?prefix=7f_")
    assert [line["key"] for line in body["keys"]] == ["7f_0", "7f_1"]
    line = body["keys"][1]
    assert (line["custom_meta"], line["revision"]) == ({"step": 41}, revision)
    assert body["keys"][0]["revision"] < revision
    assert [line["key"] for line in api.ok("GET", f"keys?prefix={quote(chr(113) + chr(34))}")["keys"]] == ['q"\\ü_1']
    assert api.ok("GET", "keys?prefix=nobody")["keys"] == []


def test_a_prefix_is_found_over_pages_that_hold_none_of_it(api: Api) -> None:
    api.ok("POST", "samples", {"keys": [f"a{i}" for i in range(20_000)]})
    api.insert("b1", "b2")
    body = api.ok("GET", "keys?prefix=b&limit=1")
    assert [line["key"] for line in body["keys"]] == ["b1"]
    body = api.ok("GET", f"keys?prefix=b&limit=1&cursor={body['next_cursor']}")
    assert ([line["key"] for line in body["keys"]], body["next_cursor"]) == (["b2"], None)


def test_a_sample_without_a_key_is_not_among_the_keys(api: Api) -> None:
    api.ok("POST", "samples", {"count": 2})
    assert api.ok("GET", "keys")["keys"] == []


def test_a_get_of_batch_meta_reads_what_the_post_does(filled: Api) -> None:
    filled.produce(["b"], "more")
    asked = {"fields": ["ids", "more"], "include": ["keys", "field_status"], "expand": True, "compact": True}
    query = "fields=ids,more&include=keys,field_status&expand=true&compact=true"
    assert filled.ok("GET", f"batch-meta?{query}") == filled.ok("POST", "batch-meta", asked)
    filled.produce(["a", "b"], "also")
    asked |= {"fields": ["more", "also"], "include": ["backend_meta"], "expand": False, "share_columns": True}
    query = "fields=more,also&include=backend_meta&expand=false&compact=true&share_columns=true"
    found = filled.ok("GET", f"batch-meta?{query}")
    assert found == filled.ok("POST", "batch-meta", asked)
    assert "same_as" in str(found)
    assert filled.ok("GET", "batch-meta") == filled.ok("POST", "batch-meta", {})
    assert filled.ok("GET", "batch-meta?fields=") == filled.ok("POST", "batch-meta", {"fields": []})


def test_batch_meta_with_its_tag_is_304_until_the_partition_changes(filled: Api) -> None:
    got = filled.send("GET", "batch-meta")
    tag = got.headers["etag"]
    assert (got.headers["cache-control"], got.headers["vary"]) == ("no-cache", "Accept")
    for header in (tag, f'"other", {tag}', f"W/{tag}", "*"):
        same = filled.send("GET", "batch-meta", headers={"If-None-Match": header})
        assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
        assert (same.headers["cache-control"], same.headers["vary"]) == ("no-cache", "Accept")
        assert same.headers["x-request-id"]
    assert filled.send("GET", "batch-meta", headers={"If-None-Match": '"other"'}).status_code == 200
    assert filled.claim("ids", task="u").status_code == 201
    changed = filled.send("GET", "batch-meta", headers={"If-None-Match": tag})
    assert (changed.status_code, changed.headers["etag"] == tag) == (200, False)


def test_another_form_has_another_tag(filled: Api) -> None:
    queries = ["", "?expand=true", "?share_columns=true", "?fields=ids", "?include=keys", "?limit=1"]
    tags = {filled.send("GET", f"batch-meta{query}").headers["etag"] for query in queries}
    assert len(tags) == len(queries)
    tag = filled.send("GET", "").headers["etag"]
    assert filled.send("GET", "batch-meta", headers={"If-None-Match": tag}).status_code == 200


def test_a_tag_of_a_deleted_partition_is_no_304(filled: Api) -> None:
    tag = filled.send("GET", "batch-meta").headers["etag"]
    filled.ok("DELETE", "")
    refused(filled.send("GET", "batch-meta", headers={"If-None-Match": tag}), 410, "partition-cleared")
    filled.insert("a")
    assert filled.send("GET", "batch-meta", headers={"If-None-Match": tag}).status_code == 200


def test_production_status_is_a_row_of_bits_per_sample_in_the_order_asked(api: Api) -> None:
    api.produce(["a", "b"], "n")
    api.produce(["b"], "m")
    body = api.ok("GET", "production?fields=m,n,m")
    assert (body["fields"], body["production_status"]) == (["m", "n", "m"], [[0, 1, 0], [1, 1, 1]])
    assert api.ok("GET", "production?fields=")["production_status"] == [[], []]
    problem = refused(api.send("GET", "production?fields=n,nobody"), 404, "field-not-found")
    assert problem["fields"] == ["nobody"]


def test_backend_meta_is_null_where_nothing_is_recorded(filled: Api) -> None:
    filled.produce(["b"], "more")
    a, b = filled.ok("POST", "batch-meta", {})["global_indexes"]
    body = filled.ok("POST", "backend-meta", {"fields": ["more", "ids", "no"], "keys": ["b", "a", "nobody"]})
    assert body["global_indexes"] == [b, a]
    assert body["backend_meta"] == {"more": {"const": None}, "ids": ["y", "x"]}
    assert (body["missing_keys"], body["missing_fields"], body["next_cursor"]) == (["nobody"], ["no"], None)
    assert filled.ok("POST", "backend-meta", {"expand": True})["backend_meta"]["more"] == [None, None]
    got = filled.ok("GET", f"backend-meta?fields=ids&global_indexes={b},{2**62}")
    assert (got["global_indexes"], got["backend_meta"]) == ([b, 2**62], {"ids": ["y", None]})
    assert filled.ok("GET", "backend-meta?expand=true")["backend_meta"]["more"] == [None, None]


def test_lookup_gives_keys_or_null(filled: Api) -> None:
    a, b = filled.ok("POST", "batch-meta", {})["global_indexes"]
    bare = filled.ok("POST", "samples", {"count": 1})["global_indexes"][0]
    assert filled.ok("POST", "keys/lookup", {"global_indexes": [b, bare, 2**62, a, a]})["keys"] == [
        "b",
        None,
        None,
        "a",
        "a",
    ]
    assert filled.ok("POST", "keys/lookup", {"global_indexes": [bare]})["keys"] == [None]
    assert filled.ok("POST", "keys/lookup", {"global_indexes": [a, a]})["keys"] == ["a", "a"]
    assert filled.ok("POST", "keys/lookup", {"global_indexes": []})["keys"] == []
