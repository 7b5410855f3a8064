"""Every malformed call gets the contract's problem with a detail that says what to change, changes nothing, and the
next call works. Here: bodies and queries that are JSON and addresses but not what the contract says.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from .conftest import fill
from .service import Api, refused

BIG = 2**63
TENSOR = {"dtype": "int64", "shape": []}
Q = "invalid-request"
RANK = {"name": "rank_aware", "dp_rank": 0, "batch_index": 0}


def deep(levels: int) -> Any:
    """A list in a list in a list."""
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def produce(**members: Any) -> dict[str, Any]:
    """A good produce of row a with these members changed."""
    return {"keys": ["a"], "field_schema": {"n": TENSOR}, **members}


def claim(**members: Any) -> dict[str, Any]:
    """A good claim with these members changed."""
    return {"fields": ["ids"], "batch_size": 1, **members}


LISTS = ("partitions", "claims", "clears")
BAD = (("a/b", "no /"), ("%5C", "no /"), ("a%0A", "control"), ("x" * 201, "200"))

# method, path after the partition's, body, code, words of the detail
SAMPLES = [
    ({}, Q, "count or keys"),
    ({"count": 0}, Q, "body.count"),
    ({"count": -1}, Q, "body.count"),
    ({"count": 10**6}, Q, "body.count", "65536"),
    ({"count": "8"}, Q, "body.count", "int"),
    ({"count": 1.5}, Q, "body.count", "int"),
    ({"count": True}, Q, "body.count", "int"),
    ({"count": 1, "keys": ["z"]}, Q, "count or keys"),
    ({"count": 1, "surprise": 1}, Q, "surprise", "leave it out"),
    ({"count": 1, "ttl_s": 0}, Q, "ttl_s"),
    ({"count": 1, "ttl_s": -1}, Q, "ttl_s"),
    ({"count": 1, "ttl_s": 86_401}, Q, "ttl_s", "86400"),
    ({"count": 1, "ttl_s": "60"}, Q, "ttl_s"),
    ({"keys": ["z", "z"]}, "duplicate-keys", "twice"),
    ({"keys": [""]}, Q, "body.keys"),
    ({"keys": ["k" * 513]}, Q, "body.keys", "512"),
    ({"keys": ["a\nb"]}, Q, "body.keys[0]", "control"),
    ({"keys": [None]}, Q, "body.keys"),
    ({"keys": {"const": "z"}}, Q, "body.keys"),
    ({"keys": ["z"], "group_ids": ["g", "g"]}, Q, "group_ids", "1 rows"),
    ({"keys": ["z"], "group_ids": [1.5]}, Q, "group_ids"),
    ({"keys": ["z"], "group_ids": [True]}, Q, "group_ids"),
    ({"keys": ["z"], "group_ids": [BIG]}, Q, "group_ids"),
    ({"keys": ["z"], "custom_meta": [{}, {}]}, Q, "custom_meta", "1 rows"),
    ({"keys": ["z"], "custom_meta": ["text"]}, Q, "custom_meta[0]", "object"),
    ({"keys": ["z"], "custom_meta": {"n": 1}}, Q, "custom_meta"),
    ({"keys": ["z"], "custom_meta": {"const": {}, "n": 1}}, Q, "custom_meta"),
    ({"keys": ["z"], "custom_meta": [{"n": 2**64}]}, Q, "custom_meta[0]", "string"),
    ({"keys": ["z"], "custom_meta": [{"n": -BIG - 1}]}, Q, "custom_meta[0]"),
    ({"keys": ["z"], "custom_meta": [{"n": deep(70)}]}, Q, "custom_meta[0]", "64"),
    ({"keys": ["z"], "custom_meta": [{"n": "x" * 65_536}]}, Q, "custom_meta[0]", "max_cell_bytes"),
    ({"keys": ["z"], "custom_meta": [{}], "custom_meta_mode": "replace"}, Q, "custom_meta_mode", "merge, update"),
    ({"keys": ["z"], "custom_meta": [{}], "custom_meta_mode": "Update"}, Q, "custom_meta_mode", "merge, update"),
    ({"keys": ["z"], "custom_meta": [{}], "custom_meta_mode": True}, Q, "custom_meta_mode"),
    ({"keys": ["z"], "custom_meta": [3], "custom_meta_mode": "update"}, Q, "custom_meta[0]", "object"),
    ({"keys": ["z"], "include": ["everything"]}, Q, "body.include[0]", "field_status"),
    ({"keys": ["z"], "include": "keys"}, Q, "body.include"),
    ({"keys": ["z"], "compact": 1}, Q, "body.compact"),
    ({"keys": ["z"], "share_columns": "yes"}, Q, "body.share_columns"),
    ({"keys": ["z"], "fields": ["ids"]}, Q, "fields", "leave it out"),
    ({"keys": ["a"], "group_ids": ["other"]}, "group-conflict", "group"),
    ([], Q, "body"),
    ("text", Q, "body"),
]
PRODUCTION = [
    ({"keys": ["a"]}, Q, "field_schema"),
    (produce(keys=None), Q, "global_indexes or keys"),
    (produce(global_indexes=[0]), Q, "global_indexes or keys"),
    (produce(keys=None, global_indexes=[BIG]), Q, "global_indexes"),
    (produce(keys=None, global_indexes=[-1]), Q, "global_indexes"),
    (produce(keys=None, global_indexes=["0"]), Q, "global_indexes"),
    (produce(keys=None, global_indexes=[7, 7]), "duplicate-indexes", "twice"),
    (produce(keys=None, global_indexes=[BIG - 1]), "sample-not-found", "insert first"),
    (produce(keys=None, global_indexes=[0], create=True), Q, "create"),
    (produce(keys=["a", "a"]), "duplicate-keys", "twice"),
    (produce(keys=["nobody"]), "key-not-found", "create"),
    (produce(create="yes"), Q, "body.create"),
    (produce(field_schema={"a,b": TENSOR}), Q, "comma"),
    (produce(field_schema={"": TENSOR}), Q, "a name here"),
    (produce(field_schema={"f" * 201: TENSOR}), Q, "a name here"),
    (produce(field_schema={"a\x00": TENSOR}), Q, "control"),
    (produce(field_schema={"n": {}}), Q, "dtype"),
    (produce(field_schema={"n": {"dtype": "int64"}}), Q, "shape"),
    (produce(field_schema={"n": {"dtype": "torch.int64", "shape": []}}), Q, "dtype"),
    (produce(field_schema={"n": {"dtype": "long", "shape": []}}), Q, "dtype"),
    (produce(field_schema={"n": {"dtype": "int64", "shape": [-1]}}), Q, "shape"),
    (produce(field_schema={"n": {"dtype": "int64", "shape": [2**31]}}), Q, "shape"),
    (produce(field_schema={"n": {"dtype": "int64", "shape": [1] * 9}}), Q, "shape"),
    (produce(field_schema={"n": {"dtype": "int64", "shape": [1.0]}}), Q, "shape"),
    (produce(field_schema={"n": {"dtype": "int64", "shape": [], "lengths": [1]}}), Q, "exactly one"),
    (produce(field_schema={"n": {"dtype": "int64", "lengths": [1, 2]}}), Q, "lengths", "1 rows"),
    (produce(field_schema={"n": {"dtype": "int64", "shapes": [[1], [2]]}}), Q, "shapes", "1 rows"),
    (produce(field_schema={"n": {"kind": "object", "dtype": "int64"}}), Q, "object"),
    (produce(field_schema={"n": {"kind": "file"}}), Q, "kind"),
    (produce(field_schema={"n": {**TENSOR, "device": "npu"}}), Q, "device"),
    (produce(field_schema={"ids": TENSOR}), "dtype-conflict", "rank"),
    (produce(field_schema={"ids": {"dtype": "int32", "lengths": [3]}}), "dtype-conflict", "int64"),
    (produce(field_schema={"ids": {"kind": "object"}}), "kind-conflict", "kind"),
    (produce(backend_meta={"other": ["x"]}), Q, "other"),
    (produce(backend_meta={"n": ["x", "y"]}), Q, "backend_meta.n", "1 rows"),
    (produce(backend_meta={"n": {"x": 1}}), Q, "backend_meta"),
    (produce(backend_meta={"n": ["x" * 65_536]}), Q, "backend_meta.n[0]", "max_cell_bytes"),
    (produce(on_cleared="ignore"), Q, "on_cleared"),
    (produce(custom_meta=[{}], custom_meta_mode="deep"), Q, "custom_meta_mode", "merge, update"),
    (produce(group_ids=["other"]), "group-conflict", "group"),
]
CLAIMS = [
    (claim(fields=[]), Q, "body.fields"),
    ({"batch_size": 1}, Q, "fields"),
    ({"fields": ["ids"]}, Q, "batch_size"),
    (claim(fields="ids"), Q, "body.fields"),
    (claim(fields=["a,b"]), Q, "comma"),
    (claim(batch_size=0), Q, "batch_size"),
    (claim(batch_size=-1), Q, "batch_size"),
    (claim(batch_size=10**6), Q, "batch_size", "65536"),
    (claim(batch_size="8"), Q, "batch_size", "int"),
    (claim(batch_size=1.5), Q, "batch_size", "int"),
    (claim(batch_size=True), Q, "batch_size", "int"),
    (claim(min_batch_size=2), Q, "min_batch_size", "at most"),
    (claim(min_batch_size=0), Q, "min_batch_size"),
    (claim(wait_s=-1), Q, "wait_s"),
    (claim(wait_s=61), Q, "wait_s", "60"),
    (claim(wait_s="1"), Q, "wait_s"),
    (claim(include=["lengths"]), Q, "include"),
    (claim(sampler="sequential"), Q, "sampler"),
    (claim(sampler={}), Q, "name"),
    (claim(sampler={"name": "os:system"}), Q, "no sampler", "grpo_group"),
    (claim(sampler={"name": "sequential", "seed": 1}), Q, "seed"),
    (claim(sampler={"name": "sequential", "group_by": "position"}), Q, "group_by"),
    (claim(sampler={"name": "grpo_group"}), Q, "n_samples_per_prompt"),
    (claim(sampler={"name": "grpo_group", "n_samples_per_prompt": 2}), Q, "multiple"),
    (claim(sampler={"name": 7}), Q, "sampler.name"),
    (claim(sampler={"name": "rank_aware"}), Q, "body.sampler", "dp_rank"),
    (claim(sampler={"name": "random", "seed": -1}), Q, "sampler.seed"),
    (claim(sampler={"name": "random", "seed": 2**63}), Q, "sampler.seed"),
    (claim(sampler={"name": "random", "seed": 1.5}), Q, "sampler.seed", "int"),
    (claim(sampler={"name": "lifo", "weight": "n"}), Q, "lifo", "weight"),
    (claim(sampler={"name": "priority"}), Q, "priority", "weight"),
    (claim(sampler={"name": "priority", "weight": "a..b"}), Q, "sampler.weight", "empty member"),
    (claim(sampler={"name": "priority", "weight": []}), Q, "sampler.weight"),
    (claim(sampler={"name": "priority", "weight": [0]}), Q, "sampler.weight", "str"),
    (claim(sampler={"name": "token_budget", "weight": "n"}), Q, "budget"),
    (claim(sampler={"name": "priority", "weight": "n", "weight_default": "1"}), Q, "sampler.weight_default"),
    (claim(sampler={"name": "priority", "weight": "n", "weight_default": True}), Q, "sampler.weight_default"),
    (claim(sampler={"name": "priority", "weight": "n", "weight_default": 2**64}), Q, "sampler.weight_default", "int64"),
    (claim(sampler={"name": "random", "weight_default": 1}), Q, "weight_default"),
    (claim(sampler=RANK | {"n_samples_per_prompt": 0}), Q, "sampler.n_samples_per_prompt"),
    (claim(sampler=RANK | {"n_samples_per_prompt": 2}), Q, "batch_size", "multiple"),
    (claim(sampler=RANK | {"group_by": "key"}), Q, "sampler.group_by"),
    (
        claim(sampler=RANK | {"name": "seqlen_balanced", "dp_size": 1, "weight": "n", "group_by": 1}),
        Q,
        "sampler.group_by",
    ),
    (claim(sampler={"name": "token_budget", "weight": "n", "budget": 0}), Q, "sampler.budget"),
    (claim(sampler={"name": "token_budget", "weight": "n", "budget": "8"}), Q, "sampler.budget"),
    (claim(where={"path": "n", "op": ">", "value": 0}), Q, "body.where", "array"),
    (claim(where=[{"path": "n", "value": 0}]), Q, "body.where[0]", "op"),
    (claim(where=[{"op": "==", "value": 0}]), Q, "body.where[0]", "path"),
    (claim(where=[{"path": "n", "op": "=", "value": 0}]), Q, "body.where[0].op"),
    (claim(where=[{"path": "", "op": "exists"}]), Q, "body.where[0].path"),
    (claim(where=[{"path": ["a"] * 33, "op": "exists"}]), Q, "body.where[0].path", "32"),
    (claim(where=[{"path": "a.", "op": "exists"}]), Q, "body.where[0].path", "empty member"),
    (claim(where=[{"path": "n", "op": "==", "value": {}}]), Q, "body.where[0].value"),
    (claim(where=[{"path": "n", "op": "=="}]), Q, "body.where[0].value"),
    (claim(where=[{"path": "n", "op": "<", "value": True}]), Q, "body.where[0].value", "number"),
    (claim(where=[{"path": "n", "op": "in", "value": 1}]), Q, "body.where[0].value", "array"),
    (claim(where=[{"path": "n", "op": "in", "value": [None]}]), Q, "body.where[0].value[0]"),
    (claim(where=[{"path": "n", "op": "in", "value": [0] * 1025}]), Q, "body.where[0].value", "1024"),
    (claim(where=[{"path": "n", "op": "==", "value": 2**64}]), Q, "body.where[0].value", "int64"),
    (claim(where=[{"path": "n", "op": "exists", "to": 1}]), Q, "body.where[0]", "to"),
    (claim(where=[{"path": "n", "op": "exists"}] * 33), Q, "body.where", "32"),
    (claim(ack="never"), Q, "ack"),
    (claim(lease_s=60), Q, "lease_s"),
    (claim(ack="explicit", lease_s=86_401), Q, "lease_s"),
    (claim(worker="a/b"), Q, "worker"),
    (claim(worker=""), Q, "worker"),
]
READS = [
    ({"global_indexes": [0], "keys": ["a"]}, Q, "one of", "not two"),
    ({"keys": ["a"], "group_ids": ["g"]}, Q, "not two"),
    ({"global_indexes": [BIG]}, Q, "global_indexes"),
    ({"group_ids": "g"}, Q, "group_ids"),
    ({"group_ids": [None]}, Q, "group_ids"),
    ({"key_prefix": ""}, Q, "key_prefix"),
    ({"key_prefix": "a\n"}, Q, "key_prefix", "control"),
    ({"where": []}, Q, "where"),
    ({"limit": 0}, Q, "limit"),
    ({"limit": 65_537}, Q, "limit"),
    ({"cursor": "??"}, Q, "next_cursor"),
    ({"cursor": ""}, Q, "cursor"),
    ({"fields": ["a,b"]}, Q, "comma"),
    ({"expand": 1}, Q, "expand"),
    ({"share_columns": "yes"}, Q, "body.share_columns"),
    ({"share_columns": {"same_as": "ids"}}, Q, "body.share_columns"),
    ({"keys": ["nobody"], "strict": True}, "key-not-found", "key"),
    ({"fields": ["nobody"], "strict": True}, "field-not-found", "field"),
    ({"global_indexes": [BIG - 1], "strict": True}, "sample-not-found", "strict"),
]
OTHERS = [
    ("PATCH", "custom-meta", {"keys": ["a"]}, Q, "custom_meta"),
    ("PATCH", "custom-meta", {"keys": ["a"], "custom_meta": [{}], "if_revision": -1}, Q, "if_revision"),
    ("PATCH", "custom-meta", {"keys": ["a"], "custom_meta": [{}], "ttl_s": 0}, Q, "ttl_s"),
    ("PATCH", "custom-meta", {"custom_meta": [{}]}, Q, "global_indexes or keys"),
    ("PATCH", "custom-meta", {"keys": ["a", "a"], "custom_meta": {"const": {}}}, "duplicate-keys", "twice"),
    ("PATCH", "backend-meta", {"keys": ["a"], "backend_meta": {"nobody": ["x"]}}, "field-not-found", "field"),
    ("PATCH", "backend-meta", {"keys": ["a"], "backend_meta": {"ids": []}}, Q, "backend_meta.ids"),
    ("POST", "samples/delete", {}, Q, "one of global_indexes"),
    ("POST", "clears", {}, Q, "all: true"),
    ("POST", "clears", {"all": False}, Q, "all: true"),
    ("POST", "clears", {"all": True, "keys": ["a"]}, Q, "all: true"),
    ("POST", "clears", {"keys": ["a"], "key_prefix": "a"}, Q, "not two"),
    ("POST", "clears", {"all": True, "where": []}, Q, "body.where", "leave where out"),
    ("POST", "clears", {"all": True, "where": [{"path": "n", "op": "~"}]}, Q, "body.where[0].op"),
    ("POST", "clears", {"where": [{"path": "n", "op": "==", "value": 1}]}, Q, "all: true"),
    ("POST", "clears", {"all": True, "tombstone": "yes"}, Q, "tombstone"),
    ("POST", "/v1/clears/x1f/commit", {"force": True}, Q, "force"),
    ("POST", "/v1/clears/nobody/commit", {}, "clear-not-found", "nobody"),
    ("POST", "/v1/clears/nobody/abort", {}, "clear-not-found", "nobody"),
    ("GET", "/v1/clears/nobody", None, "clear-not-found", "nobody"),
    ("GET", "/v1/clears?state=open", None, Q, "query.state"),
    ("GET", "/v1/clears?cursor=i1", None, Q, "next_cursor"),
    ("POST", "production/revoke", {"fields": ["ids"]}, Q, "one of global_indexes"),
    ("POST", "production/revoke", {"keys": ["a"]}, Q, "fields"),
    ("POST", "production/revoke", {"keys": ["a"], "fields": []}, Q, "body.fields"),
    ("POST", "production/revoke", {"keys": ["a"], "fields": ["a,b"]}, Q, "comma"),
    ("POST", "production/revoke", {"keys": ["a"], "global_indexes": [0], "fields": ["ids"]}, Q, "not two"),
    ("POST", "production/revoke", {"keys": ["a"], "fields": ["nobody"]}, "field-not-found", "field"),
    ("POST", "samples/delete", {"keys": ["a"], "where": []}, Q, "body.where", "no condition"),
    ("POST", "samples/delete", {"keys": ["a"], "where": [{"path": "n", "op": "?"}]}, Q, "body.where[0].op"),
    ("POST", "samples/delete", {"where": [{"path": "n", "op": "exists"}]}, Q, "one of global_indexes"),
    ("POST", "samples/delete", {"key_prefix": "a", "group_ids": ["g"]}, Q, "not two"),
    ("POST", "keys/lookup", {"global_indexes": [-1]}, Q, "global_indexes"),
    ("POST", "keys/lookup", {"global_indexes": list(range(65_537))}, Q, "65536"),
    ("PUT", "", {"expected_samples": -1}, Q, "expected_samples"),
    ("PUT", "", {"expected_samples": 2**63}, Q, "expected_samples"),
    ("PUT", "", {"max_attempts": 0}, Q, "max_attempts"),
    ("PUT", "", {"fields": {"n": {"dtype": "int64", "lengths": [1]}}}, Q, "lengths"),
    ("PUT", "", {"fields": {"n": {"shape": [1]}}}, Q, "dtype"),
    ("PUT", "", {"fields": {"ids": {"dtype": "float32"}}}, "dtype-conflict", "int64"),
    ("POST", "tasks/t/consumption/reset", {"all": True}, Q, "all"),
    ("POST", "consumption/reset", [], Q, "body"),
    ("GET", "batch-meta?include=secrets", None, Q, "query.include", "field_schema"),
    ("GET", "batch-meta?limit=many", None, Q, "query.limit"),
    ("GET", "backend-meta?global_indexes=0,x", None, Q, "query.global_indexes"),
    ("GET", f"backend-meta?global_indexes={BIG}", None, Q, "query.global_indexes"),
    ("GET", "production", None, Q, "fields"),
    ("GET", "production?fields=nobody", None, "field-not-found", "field"),
    ("PATCH", "custom-meta", {"keys": ["a"], "custom_meta": [{}], "custom_meta_mode": ""}, Q, "merge, update"),
    *(("GET", f"/v1/{what}?prefix={prefix}", None, Q, "query.prefix", word) for what in LISTS for prefix, word in BAD),
    ("GET", "keys?wait_s=1", None, Q, "since_revision"),
    ("GET", "keys?since_revision=-1", None, Q, "query.since_revision"),
    ("GET", "keys?since_revision=now", None, Q, "query.since_revision"),
    ("GET", "keys?since_revision=0&wait_s=61", None, Q, "query.wait_s", "60"),
    ("GET", "keys?since_revision=0&cursor=i0", None, Q, "next_cursor"),
    ("GET", "keys?since_revision=0&where=n", None, Q, "query.where"),
    ("GET", "keys?where=n%3E0", None, Q, "query.where", "JSON"),
    ("GET", "keys?where=", None, Q, "query.where"),
    ("GET", "keys?where=%7B%7D", None, Q, "query.where", "array"),
    ("GET", "keys?where=%5B%7B%22path%22:%22n%22,%22op%22:%22~%22%7D%5D", None, Q, "query.where[0].op"),
    ("GET", "keys?where=%5B%7B%22path%22:%22n%22,%22op%22:%22==%22%7D%5D", None, Q, "query.where[0].value"),
    ("GET", "keys?limit=10001", None, Q, "limit"),
    ("GET", "keys?limit=1&limit=2", None, Q, "twice"),
    ("GET", "?wait_s=1", None, Q, "revision"),
    ("GET", "tasks/t/consumption?counts_only=perhaps", None, Q, "counts_only"),
    ("POST", "samples?count=1", {"count": 1}, Q, "query.count", "body"),
    ("DELETE", "?force=true", None, Q, "force"),
]
TABLE = [
    *(("POST", "samples", *row) for row in SAMPLES),
    *(("POST", "production", *row) for row in PRODUCTION),
    *(("POST", "tasks/t/claims", *row) for row in CLAIMS),
    *(("POST", "batch-meta", *row) for row in READS),
    *OTHERS,
]
STATUS = {
    "dtype-conflict": 409,
    "kind-conflict": 409,
    "group-conflict": 409,
    "key-not-found": 404,
    "field-not-found": 404,
    "sample-not-found": 404,
    "clear-not-found": 404,
}


@pytest.fixture(scope="module")
def untouched(server_url: str) -> Iterator[tuple[Api, Any]]:
    """A partition that no call of the table may change, and its dump."""
    api = Api(server_url)
    with api.http:
        yield fill(api), api.dump()


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]} {row[1]} {str(row[2])[:60]}")
def test_a_bad_call_is_refused_with_advice_and_changes_nothing(
    untouched: tuple[Api, Any], row: tuple[Any, ...]
) -> None:
    (api, before), (method, path, body, code, *words) = untouched, row
    refused(api.send(method, path, body), STATUS.get(code, 422), code, *words)
    assert api.dump() == before


def test_the_place_of_what_is_wrong_is_named(filled: Api) -> None:
    problem = refused(filled.claim("a,b"), 422, Q)
    assert problem["errors"][0]["loc"] == "body.fields"
    problem = refused(filled.send("POST", "samples", {"keys": ["ok", 7]}), 422, Q)
    assert problem["errors"][0]["loc"] == "body.keys[1]"


@pytest.mark.parametrize("size", [0, 100_000], ids=["small", "large"])
def test_what_is_wrong_with_one_field_is_told_with_its_name_and_what_there_is(filled: Api, size: int) -> None:
    rest = {"keys": ["a"], "custom_meta": [{"x": ["y" * 1000] * (size // 1000)}]}
    schema = {"ids": {"dtype": "int64", "lengths": [3]}, "mask": {"dtype": "floaty", "lengths": [3]}}
    problem = refused(
        filled.send("POST", "production", {"field_schema": schema, **rest}), 422, Q, "use one of", "int64"
    )
    assert problem["errors"][0]["loc"] == "body.field_schema.mask.dtype"
    problem = refused(filled.send("POST", "production", produce(backend_meta={"n": 7}, **rest)), 422, Q)
    assert problem["errors"][0]["loc"] == "body.backend_meta.n"
    problem = refused(filled.send("PUT", "", {"fields": {"n": {"shape": [-1]}}}), 422, Q)
    assert problem["errors"][0]["loc"] == "body.fields.n.shape[0]"


CHOICES = [
    (claim(ack="never"), "body.ack", "on_dispatch, explicit"),
    (claim(include=["keys", "all"]), "body.include[1]", "field_status"),
    (claim(where=[{"path": "n", "op": "~"}]), "body.where[0].op", "prefix, exists"),
    (
        claim(sampler={"name": "grpo_group", "n_samples_per_prompt": 1, "group_by": "x"}),
        "body.sampler.group_by",
        "position",
    ),
]


@pytest.mark.parametrize(("body", "loc", "word"), CHOICES, ids=lambda part: str(part)[:30])
def test_where_there_is_a_choice_it_is_listed(filled: Api, body: Any, loc: str, word: str) -> None:
    problem = refused(filled.send("POST", "tasks/t/claims", body), 422, Q, "use one of", word)
    assert problem["errors"][0]["loc"] == loc
    refused(filled.send("GET", "/v1/clears?state=open"), 422, Q, "query.state", "pending, committed, aborted")


def test_only_the_first_twenty_offenders_are_named(filled: Api) -> None:
    keys = [f"nobody{i}" for i in range(30)]
    problem = refused(filled.send("POST", "production", produce(keys=keys)), 404, "key-not-found")
    assert problem["keys"] == keys[:20]


def test_a_cell_may_not_grow_over_the_limit_by_merging(filled: Api) -> None:
    half = "x" * 40_000
    patch = {"keys": ["a"], "custom_meta": [{"one": half}]}
    filled.ok("PATCH", "custom-meta", patch)
    before = filled.dump()
    patch["custom_meta"] = [{"two": half}]
    refused(filled.send("PATCH", "custom-meta", patch), 422, Q, "after the merge", "custom_meta[0]")
    assert filled.dump() == before
