"""What each call sends, and what it returns for the answer. The table has a line per member."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from batchmeta import Array, AsyncClient, BatchMeta, Const, FieldSchema
from batchmeta.wire import requests
from tests.client.service import Scripted, batch, client, ok, partition, problem

Run = Callable[[AsyncClient], Awaitable[Any]]
HEAD = {"partition_id": "p", "revision": 7}
SHARED = {"share_columns": True}
NONE_CLAIMED = {**HEAD, "claim": None, "batch": batch([]), "ready": 1, "wanted": 2, "done": False, "blocking": []}
PLAN = {
    "global_indexes": [0, 1],
    "keys": ["a", None],
    "fields": {"x": {"written": {"const": 1}, "backend_meta": ["1", {"n": 2}]}},
}
PLANNED = {**HEAD, "clear_id": "x9", "state": "pending", "plan": PLAN, "skipped_clearing": [7]}
COUNTS = {"consumed": 1, "leased": 0, "dead": 0, "total": 2, "done": False}

SENT: list[tuple[Run, str, str, Any, dict[str, Any]]] = [
    (
        lambda c: c.put_partition("p", expected_samples=3, fields={"x": {"dtype": "int64", "ragged": True}}),
        "PUT",
        "/v1/partitions/p",
        {"expected_samples": 3, "fields": {"x": {"dtype": "int64", "ragged": True}}},
        partition(),
    ),
    (lambda c: c.put_partition("p"), "PUT", "/v1/partitions/p", {}, partition()),
    (lambda c: c.partition("train@step_12"), "GET", "/v1/partitions/train@step_12", None, partition()),
    (
        lambda c: c.partitions("a b&"),
        "GET",
        "/v1/partitions?prefix=a%20b%26",
        None,
        {"partitions": [], "next_cursor": None},
    ),
    (lambda c: c.delete_partition("p"), "DELETE", "/v1/partitions/p", None, {**HEAD, "cleared_samples": 0}),
    (
        lambda c: c.insert("p", count=2, custom_meta=Const({"a": 1}), group_ids=["g", 7]),
        "POST",
        "/v1/partitions/p/samples",
        {"count": 2, "custom_meta": {"const": {"a": 1}}, "group_ids": ["g", 7], **SHARED},
        batch([0, 1]),
    ),
    (
        lambda c: c.insert("p", keys=("a", "b"), custom_meta=({"x": 1}, None)),
        "POST",
        "/v1/partitions/p/samples",
        {"keys": ["a", "b"], "custom_meta": [{"x": 1}, None], **SHARED},
        batch([0, 1]),
    ),
    (
        lambda c: c.insert(
            "p",
            keys=["a"],
            custom_meta=[{"x": None}],
            custom_meta_mode="update",
            include=["field_status"],
            compact=True,
            expand=True,
        ),
        "POST",
        "/v1/partitions/p/samples",
        {
            "keys": ["a"],
            "custom_meta": [{"x": None}],
            "custom_meta_mode": "update",
            "include": ["field_status"],
            "compact": True,
            "expand": True,
            **SHARED,
        },
        batch([0]),
    ),
    (
        lambda c: c.produce("p", {}, keys=["a"], custom_meta=[{"x": None}], custom_meta_mode="update"),
        "POST",
        "/v1/partitions/p/production",
        {"field_schema": {}, "keys": ["a"], "custom_meta": [{"x": None}], "custom_meta_mode": "update"},
        {**HEAD, "global_indexes": [0], "created": 0},
    ),
    (
        lambda c: c.patch_custom_meta("p", [{"a": None}], keys=["a"], custom_meta_mode="update"),
        "PATCH",
        "/v1/partitions/p/custom-meta",
        {"custom_meta": [{"a": None}], "keys": ["a"], "custom_meta_mode": "update"},
        HEAD,
    ),
    (lambda c: c.open_claims(prefix="job~"), "GET", "/v1/claims?prefix=job~", None, {"claims": []}),
    (
        lambda c: c.clears(prefix="job~"),
        "GET",
        "/v1/clears?prefix=job~",
        None,
        {"clears": [], "next_cursor": None},
    ),
    (
        lambda c: c.produce(
            "p",
            {"x": {"dtype": "int64", "lengths": (3, 4)}, "o": {"kind": "object"}, "y": FieldSchema("object")},
            keys=["a", "b"],
            create=True,
            backend_meta={"x": Const("1"), "o": [None, {"n": 3}]},
        ),
        "POST",
        "/v1/partitions/p/production",
        {
            "field_schema": {
                "x": {"dtype": "int64", "lengths": [3, 4]},
                "o": {"kind": "object"},
                "y": {"kind": "object"},
            },
            "keys": ["a", "b"],
            "create": True,
            "backend_meta": {"x": {"const": "1"}, "o": [None, {"n": 3}]},
        },
        {**HEAD, "global_indexes": [0, 1], "created": 2},
    ),
    (
        lambda c: c.patch_custom_meta("p", [{"a": None}], global_indexes=range(1)),
        "PATCH",
        "/v1/partitions/p/custom-meta",
        {"custom_meta": [{"a": None}], "global_indexes": [0]},
        HEAD,
    ),
    (
        lambda c: c.patch_backend_meta("p", {"x": [5]}, keys=["a"]),
        "PATCH",
        "/v1/partitions/p/backend-meta",
        {"backend_meta": {"x": [5]}, "keys": ["a"]},
        {**HEAD, "global_indexes": [0]},
    ),
    (lambda c: c.read("p"), "POST", "/v1/partitions/p/batch-meta", SHARED, batch([0])),
    (
        lambda c: c.read(
            "p", fields=["x"], global_indexes=[3], include=["keys"], strict=True, compact=True, expand=True
        ),
        "POST",
        "/v1/partitions/p/batch-meta",
        {
            "fields": ["x"],
            "global_indexes": [3],
            "include": ["keys"],
            "strict": True,
            "compact": True,
            "expand": True,
            **SHARED,
        },
        batch([3]),
    ),
    (
        lambda c: c.read_backend_meta("p", fields=["x"], keys=["k"]),
        "POST",
        "/v1/partitions/p/backend-meta",
        {"fields": ["x"], "keys": ["k"]},
        {
            **HEAD,
            "global_indexes": [0],
            "backend_meta": {"x": ["1"]},
            "missing_keys": [],
            "missing_fields": [],
            "next_cursor": None,
        },
    ),
    (
        lambda c: c.production("p", ["a", "b c"]),
        "GET",
        "/v1/partitions/p/production?fields=a%2Cb%20c",
        None,
        {**HEAD, "global_indexes": [], "fields": ["a", "b c"], "production_status": [], "next_cursor": None},
    ),
    (
        lambda c: c.lookup_keys("p", Array([1, 2])),
        "POST",
        "/v1/partitions/p/keys/lookup",
        {"global_indexes": [1, 2]},
        {**HEAD, "keys": ["a", None]},
    ),
    (lambda c: c.keys("p"), "GET", "/v1/partitions/p/keys", None, {**HEAD, "keys": [], "next_cursor": None}),
    (
        lambda c: c.read("p", group_ids=["g", 7]),
        "POST",
        "/v1/partitions/p/batch-meta",
        {"group_ids": ["g", 7], **SHARED},
        batch([0]),
    ),
    (
        lambda c: c.delete("p", key_prefix="a"),
        "POST",
        "/v1/partitions/p/samples/delete",
        {"key_prefix": "a"},
        {**HEAD, "cleared": 1, "skipped_clearing": []},
    ),
    (
        lambda c: c.produce("p", {}, global_indexes=[1, 2], on_cleared="skip"),
        "POST",
        "/v1/partitions/p/production",
        {"field_schema": {}, "global_indexes": [1, 2], "on_cleared": "skip"},
        {**HEAD, "global_indexes": [2], "created": 0, "skipped": [1]},
    ),
    (
        lambda c: c.plan_clear("p", all_rows=True, where=[{"path": "n", "op": "<", "value": 8}], tombstone=True),
        "POST",
        "/v1/partitions/p/clears",
        {"all": True, "where": [{"path": "n", "op": "<", "value": 8}], "tombstone": True},
        PLANNED,
    ),
    (
        lambda c: c.plan_clear("p", group_ids=["g", 7]),
        "POST",
        "/v1/partitions/p/clears",
        {"group_ids": ["g", 7]},
        PLANNED,
    ),
    (
        lambda c: c.commit_clear("x9"),
        "POST",
        "/v1/clears/x9/commit",
        {},
        {**HEAD, "clear_id": "x9", "state": "committed", "cleared": 2},
    ),
    (
        lambda c: c.abort_clear("x9"),
        "POST",
        "/v1/clears/x9/abort",
        {},
        {**HEAD, "clear_id": "x9", "state": "aborted"},
    ),
    (
        lambda c: c.clears("pending"),
        "GET",
        "/v1/clears?state=pending",
        None,
        {"clears": [], "next_cursor": None},
    ),
    (
        lambda c: c.seen_clear("x9"),
        "GET",
        "/v1/clears/x9",
        None,
        {**HEAD, "clear_id": "x9", "state": "aborted", "count": 2, "age_s": 1.5},
    ),
    (
        lambda c: c.keys("p", "a", where=[{"path": "n", "op": ">", "value": 1}]),
        "GET",
        "/v1/partitions/p/keys?prefix=a&where=%5B%7B%22path%22%3A%22n%22%2C%22op%22%3A%22%3E%22%2C%22value%22%3A1%7D%5D",
        None,
        {**HEAD, "keys": [], "next_cursor": None},
    ),
    (
        lambda c: c.delete("p", keys=["a"], where=[requests.Condition(path=["a.b"], op="exists")]),
        "POST",
        "/v1/partitions/p/samples/delete",
        {"keys": ["a"], "where": [{"path": ["a.b"], "op": "exists"}]},
        {**HEAD, "cleared": 1, "skipped_clearing": []},
    ),
    (
        lambda c: c.delete("p", global_indexes=[1]),
        "POST",
        "/v1/partitions/p/samples/delete",
        {"global_indexes": [1]},
        {**HEAD, "cleared": 1, "skipped_clearing": []},
    ),
    (
        lambda c: c.claim("p", "train er", ["x"], 2, min_batch_size=1, wait_s=0.5, sampler={"name": "sequential"}),
        "POST",
        "/v1/partitions/p/tasks/train%20er/claims",
        {
            "fields": ["x"],
            "batch_size": 2,
            "min_batch_size": 1,
            "wait_s": 0.5,
            "sampler": {"name": "sequential"},
            **SHARED,
        },
        NONE_CLAIMED,
    ),
    (
        lambda c: c.claim("p", "t", ["x"], 2, sampler=requests.Sampler(name="grpo_group", n_samples_per_prompt=2)),
        "POST",
        "/v1/partitions/p/tasks/t/claims",
        {"fields": ["x"], "batch_size": 2, "sampler": {"name": "grpo_group", "n_samples_per_prompt": 2}, **SHARED},
        NONE_CLAIMED,
    ),
    (
        lambda c: c.claim(
            "p", "t", ["x"], 2, sampler={"name": "mine", "far": [1]}, where=({"path": "n", "op": "exists"},)
        ),
        "POST",
        "/v1/partitions/p/tasks/t/claims",
        {
            "fields": ["x"],
            "batch_size": 2,
            "sampler": {"name": "mine", "far": [1]},
            "where": [{"path": "n", "op": "exists"}],
            **SHARED,
        },
        NONE_CLAIMED,
    ),
    (
        lambda c: c.consumption("p", "t", counts_only=True),
        "GET",
        "/v1/partitions/p/tasks/t/consumption?counts_only=true",
        None,
        {**HEAD, **COUNTS},
    ),
    (lambda c: c.reset("p", "t"), "POST", "/v1/partitions/p/tasks/t/consumption/reset", {}, {**HEAD, "reset": 1}),
    (lambda c: c.reset("p"), "POST", "/v1/partitions/p/consumption/reset", {}, {**HEAD, "reset": 1}),
]


@pytest.mark.asyncio
@pytest.mark.parametrize(("run", "method", "target", "body", "answer"), SENT)
async def test_what_is_sent(run: Run, method: str, target: str, body: Any, answer: dict[str, Any]) -> None:
    script = Scripted(ok(answer))
    await run(client(script))
    (request,) = script.requests
    assert (request.method, request.url.raw_path.decode()) == (method, target)
    assert (json.loads(request.content) if request.content else None) == body
    assert ("Content-Type" in request.headers) == (body is not None)


@pytest.mark.asyncio
async def test_values_of_the_answers() -> None:
    produced = {**HEAD, "global_indexes": [4, 2], "created": 1}
    assert (await client(Scripted(ok(produced))).produce("p", {}, keys=["a", "b"])).global_indexes == [4, 2]
    assert await client(Scripted(ok({**HEAD, "keys": ["a", None]}))).lookup_keys("p", [1, 2]) == ["a", None]
    assert (await client(Scripted(ok(batch([0], created=1), 201))).insert("p", count=1)).created == 1


@pytest.mark.asyncio
async def test_a_claim_is_true_when_a_batch_was_handed_out() -> None:
    info = {"claim_id": "c-1", "task": "t", "ack": "on_dispatch", "worker": None}
    claimed = await client(Scripted(ok({**HEAD, "claim": info, "batch": batch([5])}, 201))).claim("p", "t", ["x"], 1)
    assert claimed
    assert (claimed.claim_id, claimed.batch) == ("c-1", BatchMeta.from_dict(batch([5])))
    reason = {"reason": "not-produced", "count": 1, "global_indexes": [0], "field": "x"}
    none = await client(Scripted(ok({**NONE_CLAIMED, "blocking": [reason]}))).claim("p", "t", ["x"], 2)
    assert not none
    assert (none.claim_id, none.batch.size, none.ready, none.wanted, none.done) == (None, 0, 1, 2, False)
    assert [(each.reason, each.field) for each in none.blocking] == [("not-produced", "x")]
    assert none.stranded == 0
    done = await client(Scripted(ok({**NONE_CLAIMED, "done": True, "stranded": 3}))).claim("p", "t", ["x"], 2)
    assert (done.done, done.stranded) == (True, 3)


@pytest.mark.asyncio
async def test_a_clear_has_its_plan_as_columns_while_it_is_pending() -> None:
    clear = await client(Scripted(ok(PLANNED))).plan_clear("p", global_indexes=[0, 1, 7])
    assert (clear.clear_id, clear.state, clear.count, clear.skipped_clearing) == ("x9", "pending", 2, (7,))
    assert (clear.global_indexes, clear.keys) == ([0, 1], ["a", None])
    assert (clear.fields["x"].written, clear.fields["x"].backend_meta) == ([1, 1], ["1", {"n": 2}])
    line = {"clear_id": "x9", "state": "pending", "count": 2, "age_s": 1.5}
    again = await client(Scripted(ok({**HEAD, **line, "plan": PLAN}))).seen_clear("x9")
    assert (again.global_indexes, again.fields) == (clear.global_indexes, clear.fields)
    closed = await client(Scripted(ok({**HEAD, **line, "state": "committed"}))).seen_clear("x9")
    assert (closed.count, closed.global_indexes, closed.keys, closed.fields) == (2, [], [], {})


@pytest.mark.asyncio
async def test_waiting_extends_the_read_timeout_of_that_call_alone() -> None:
    script = Scripted(ok(NONE_CLAIMED))
    waiting = AsyncClient(timeout=2.0, transport=httpx.MockTransport(script))
    await waiting.claim("p", "t", ["x"], 2, wait_s=30)
    await waiting.claim("p", "t", ["x"], 2)
    phases = [request.extensions["timeout"] for request in script.requests]
    assert phases[0] == {"connect": 2.0, "read": 32.0, "write": 2.0, "pool": 2.0}
    assert phases[1]["read"] == 2.0


@pytest.mark.asyncio
async def test_an_etag_goes_from_the_partition_to_if_match() -> None:
    script = Scripted(ok(partition(), ETag='"e-1"'), ok({**HEAD, "cleared_samples": 0}))
    service = client(script)
    tagged = await service.tagged_partition("p")
    assert tagged.partition.partition_id == "p"
    await service.delete_partition("p", if_match=tagged.etag)
    assert script.requests[1].headers["If-Match"] == '"e-1"'


@pytest.mark.asyncio
async def test_ready_says_no_only_when_the_service_says_so() -> None:
    assert await client(Scripted(ok({"status": "ready"}))).ready()
    script = Scripted(problem("not-ready", headers={"Retry-After": "1"}))
    assert not await client(script).ready()
    assert len(script.requests) == 1


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["", ".", ".."])
async def test_a_name_that_leads_elsewhere_is_refused_before_it_is_sent(name: str) -> None:
    script = Scripted(ok({}))
    with pytest.raises(ValueError, match="is not a name"):
        await client(script).delete_partition(name)
    assert not script.requests


@pytest.mark.asyncio
async def test_a_slash_stays_within_the_name() -> None:
    script = Scripted(problem("invalid-request"))
    with pytest.raises(Exception, match="invalid-request"):
        await client(script).partition("a/b?c#d")
    assert script.requests[0].url.raw_path == b"/v1/partitions/a%2Fb%3Fc%23d"


@pytest.mark.asyncio
async def test_a_base_url_may_have_a_path() -> None:
    script = Scripted(ok(partition()))
    await AsyncClient("http://host:1/meta/", transport=httpx.MockTransport(script)).partition("p")
    assert str(script.requests[0].url) == "http://host:1/meta/v1/partitions/p"


@pytest.mark.parametrize("url", ["localhost:8700", "127.0.0.1", "", "ftp://host", "http://"])
def test_a_base_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="base_url"):
        AsyncClient(url)


UNSENDABLE: list[tuple[Run, type[Exception], str]] = [
    (
        lambda c: c.insert("p", count=1, custom_meta=[{"a": [float("nan")]}]),
        ValueError,
        r"custom_meta\[0\]\.a\[0\]: nan",
    ),
    (lambda c: c.insert("p", count=1, custom_meta=Const({"a": float("inf")})), ValueError, r"custom_meta\.a: inf"),
    (
        lambda c: c.patch_backend_meta("p", {"x": [{"s": float("nan")}]}, keys=["a"]),
        ValueError,
        r"backend_meta\.x\[0\]\.s: nan",
    ),
    (
        lambda c: c.insert("p", count=1, custom_meta=[{"a": object()}]),
        TypeError,
        r"custom_meta\[0\]\.a: JSON .* is wanted",
    ),
    (lambda c: c.insert("p", keys="abc"), TypeError, "'abc'"),
    (lambda c: c.claim("p", "t", "input_ids", 1), TypeError, "'input_ids'"),
    (lambda c: c.production("p", "x"), TypeError, "'x'"),
    (lambda c: c.read("p", group_ids="abc"), TypeError, "'abc'"),
    (lambda c: c.delete("p", keys=["a"], where={"path": "n", "op": "exists"}), TypeError, "a list of conditions"),  # type: ignore[arg-type]
]


@pytest.mark.asyncio
@pytest.mark.parametrize(("run", "kind", "text"), UNSENDABLE)
async def test_what_is_not_json_is_refused_before_it_is_sent(run: Run, kind: type[Exception], text: str) -> None:
    script = Scripted(ok({}))
    with pytest.raises(kind, match=text):
        await run(client(script))
    assert not script.requests


@pytest.mark.asyncio
async def test_columns_of_a_batch_go_back_as_they_came() -> None:
    schema = {"kind": "tensor", "dtype": "int64", "ragged": True, "shapes": [[1], [2]]}
    meta = BatchMeta.from_dict(batch([8, 9], custom_meta=[{"a": 1}, {}], field_schema={"x": schema}))
    script = Scripted(ok({**HEAD, "global_indexes": [8, 9], "created": 0}))
    assert meta.field_schema is not None
    await client(script).produce(
        "p", meta.field_schema, global_indexes=meta.global_indexes, custom_meta=meta.custom_meta
    )
    expected = {"field_schema": {"x": schema}, "global_indexes": [8, 9], "custom_meta": [{"a": 1}, {}]}
    assert script.bodies == [expected]
