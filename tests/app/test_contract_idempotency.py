"""`Idempotency-Key` (contract#idempotency) over HTTP: each changing call made once however often it is sent."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import httpx
import pytest

from app.keys import keyed
from app.routes import ALL
from tests.conftest import ServerProcess

from .service import Api, Json, exchange, head, refused

LIMITS = httpx.Limits(max_connections=None)
JSON = {"Content-Type": "application/json"}
SCHEMA = {"n": {"dtype": "int64", "shape": []}}

# Every call that changes something, with what it takes on a partition that `filled` made.
CHANGES: list[tuple[str, str, Json]] = [
    ("PUT", "", {"expected_samples": 9}),
    ("POST", "samples", {"count": 2}),
    ("POST", "samples", {"keys": ["a", "new"], "custom_meta": [{"m": 3}, None]}),
    ("POST", "production", {"keys": ["a"], "field_schema": SCHEMA}),
    ("PATCH", "custom-meta", {"keys": ["a"], "custom_meta": [{"m": 1}]}),
    ("POST", "samples", {"keys": ["timed"], "ttl_s": 60}),
    ("PATCH", "custom-meta", {"keys": ["a"], "custom_meta": [{"m": 2}], "ttl_s": 60}),
    ("POST", "production/revoke", {"keys": ["a"], "fields": ["ids"]}),
    ("PATCH", "backend-meta", {"keys": ["a"], "backend_meta": {"ids": ["moved"]}}),
    ("POST", "tasks/t/claims", {"fields": ["ids"], "batch_size": 1}),
    ("POST", "tasks/t/claims", {"fields": ["ids"], "batch_size": 1, "wait_s": 30}),
    ("POST", "tasks/t/consumption/reset", {}),
    ("POST", "consumption/reset", {}),
    ("POST", "tasks/t/claims", {"fields": ["ids"], "batch_size": 1, "ack": "explicit"}),
    ("POST", "/v1/claims/{claim_id}/ack", {"token": "{token}"}),
    ("POST", "/v1/claims/{claim_id}/extend", {"token": "{token}", "lease_s": 60}),
    ("POST", "/v1/workers/{worker}/release", {}),
    ("PATCH", "", {"max_samples": 99}),
    ("POST", "seal", {}),
    ("POST", "clears", {"keys": ["a"]}),
    ("POST", "/v1/clears/{clear_id}/commit", {}),
    ("POST", "/v1/clears/{clear_id}/abort", {}),
    ("POST", "samples/delete", {"keys": ["a"]}),
    ("DELETE", "", None),
]
each_change = pytest.mark.parametrize(("method", "path", "body"), CHANGES, ids=lambda part: str(part)[:40])


def key() -> dict[str, str]:
    """The header with a key that was never used."""
    return {"Idempotency-Key": uuid4().hex}


def leased(api: Api, path: str, body: Json) -> tuple[str, Json]:
    """Path and body with the names of a lease or a clear of its own, where they ask for them."""
    if not path.startswith("/"):
        return path, body
    if "{clear_id}" in path:
        return path.replace("{clear_id}", api.ok("POST", "clears", {"keys": ["b"]})["clear_id"]), body
    worker = uuid4().hex
    claim = api.claim("ids", ack="explicit", worker=worker).json()["claim"]
    names = {"{claim_id}": claim["claim_id"], "{worker}": worker}
    for name, value in names.items():
        path = path.replace(name, value)
    return path, body | ({"token": claim["token"]} if "token" in body else {})


def is_replay(reply: httpx.Response) -> bool:
    return reply.headers.get("idempotency-replayed") == "true"


def test_the_list_names_every_changing_route() -> None:
    """But those of checkpoints, which change all partitions: test_contract_checkpoints.py."""
    routes = {(op.method, op.path) for group in ALL for op in group.operations if op.changes}
    routes = {(method, path) for method, path in routes if not path.startswith("/v1/checkpoints")}
    inside = "/v1/partitions/{partition_id}"
    paths = [path.replace("tasks/t/", "tasks/{task}/") for _, path, _ in CHANGES]
    listed = [path if path.startswith("/") else f"{inside}/{path}".rstrip("/") for path in paths]
    assert {(method, path) for (method, _, _), path in zip(CHANGES, listed, strict=True)} == routes


@each_change
def test_sent_again_it_changes_nothing_more_and_gets_the_first_reply(
    filled: Api, method: str, path: str, body: Json
) -> None:
    headers = key()
    path, body = leased(filled, path, body)
    first = filled.send(method, path, body, headers=headers)
    assert first.is_success, first.text
    assert "idempotency-replayed" not in first.headers
    after = filled.dump()
    for _ in range(2):
        again = filled.send(method, path, body, headers=headers)
        assert is_replay(again)
        assert (again.status_code, again.content) == (first.status_code, first.content)
        named = ("content-type", "etag", "cache-control", "x-epoch")
        assert [again.headers.get(name) for name in named] == [first.headers.get(name) for name in named]
        assert again.headers["x-request-id"] != first.headers["x-request-id"]
    assert filled.dump() == after


@each_change
def test_another_request_under_the_key_is_refused(filled: Api, method: str, path: str, body: Json) -> None:
    headers = key()
    path, body = leased(filled, path, body)
    assert filled.send(method, path, body, headers=headers).is_success
    before = filled.dump()
    reply = filled.send("POST", "samples", {"count": 1, "custom_meta": [{"other": True}]}, headers=headers)
    refused(reply, 422, "idempotency-mismatch", "Idempotency-Key", "new key")
    assert filled.dump() == before


def test_a_key_stands_for_method_path_query_and_body_bytes(api: Api) -> None:
    headers = key()
    body = b'{"count": 1}'
    assert api.send("POST", "samples", content=body, headers={**headers, **JSON}).status_code == 201
    for other in (b'{"count":1}', b'{"count": 2}'):
        refused(api.send("POST", "samples", content=other, headers={**headers, **JSON}), 422, "idempotency-mismatch")
    elsewhere = api.send("POST", f"{api.path}x/samples", content=body, headers={**headers, **JSON})
    refused(elsewhere, 422, "idempotency-mismatch")
    assert is_replay(api.send("POST", "samples", content=body, headers={**headers, **JSON}))


def test_a_digest_tells_all_parts_of_a_request_and_the_caller_apart() -> None:
    parts = ("POST", "/v1/a", b"q=1", b"{}", "me")
    others = [
        ("PUT", "/v1/a", b"q=1", b"{}", "me"),
        ("POST", "/v1/b", b"q=1", b"{}", "me"),
        ("POST", "/v1/a", b"q=2", b"{}", "me"),
        ("POST", "/v1/a", b"q=1", b"{} ", "me"),
        ("POST", "/v1/a", b"q=1", b"{}", ""),
        ("POST", "/v1/aq", b"=1", b"{}", "me"),
    ]
    assert keyed("k", *parts) == keyed("k", *parts)
    assert len({keyed("k", *each).digest for each in (parts, *others)}) == 1 + len(others)


@pytest.mark.parametrize("given", ["x", "~" * 200, "a b", '"quoted"'])
def test_any_1_to_200_printable_ascii_characters_are_a_key(api: Api, given: str) -> None:
    headers = {"Idempotency-Key": given}
    assert api.send("PUT", "", {}, headers=headers).status_code == 201
    assert is_replay(api.send("PUT", "", {}, headers=headers))


@pytest.mark.parametrize("given", ["", "~" * 201, "\xe9", "a\tb"])
@pytest.mark.parametrize(("method", "path"), [("POST", "/samples"), ("DELETE", "")])
def test_what_is_no_key_is_refused(api: Api, given: str, method: str, path: str) -> None:
    length = "Content-Length: 0"
    problem = refused(
        exchange(api.url, head(method, api.path + path, f"Idempotency-Key: {given}", length)), 422, "invalid-request"
    )
    assert problem["errors"][0]["loc"] == "header.Idempotency-Key"


@pytest.mark.parametrize("given", ["k", "~" * 201, ""])
def test_reads_ignore_it(filled: Api, given: str) -> None:
    headers = {"Idempotency-Key": given}
    reads = [
        ("GET", "", None),
        ("GET", "keys", None),
        ("POST", "batch-meta", {}),
        ("POST", "backend-meta", {}),
        ("POST", "keys/lookup", {"global_indexes": [0]}),
    ]
    for method, path, body in reads:
        before = filled.send(method, path, body, headers=headers)
        filled.insert(uuid4().hex)
        after = filled.send(method, path, body, headers=headers)
        assert (before.status_code, after.status_code) == (200, 200)
        assert before.content != after.content
        assert not is_replay(after)


def test_refusals_are_forgotten_at_once(api: Api) -> None:
    headers = key()
    write = {"keys": ["a"], "field_schema": SCHEMA}
    refused(api.send("POST", "production", write, headers=headers), 404, "partition-not-found")
    refused(api.send("POST", "samples", {"count": 0}, headers=headers), 422, "invalid-request")
    api.insert("a")
    reply = api.send("POST", "production", write, headers=headers)
    assert (reply.status_code, is_replay(reply)) == (200, False)
    assert is_replay(api.send("POST", "production", write, headers=headers))


@pytest.mark.parametrize("wait_s", [0, 0.01])
def test_a_claim_that_found_nothing_gets_the_data_that_came_since(api: Api, wait_s: float) -> None:
    api.insert("a")
    headers = key()

    def claim() -> httpx.Response:
        body = {"fields": ["n"], "batch_size": 1, "wait_s": wait_s}
        return api.send("POST", "tasks/t/claims", body, headers=headers)

    assert claim().json()["claim"] is None
    api.produce(["a"], "n")
    first = claim()
    assert (first.status_code, is_replay(first)) == (201, False)
    api.produce(["b"], "n")
    again = claim()
    assert (again.status_code, again.content, is_replay(again)) == (201, first.content, True)
    assert api.ok("GET", "tasks/t/consumption")["consumed"] == 1


def test_a_claim_that_is_done_is_not_kept_either(api: Api) -> None:
    api.ok("PUT", "", {"expected_samples": 1})
    api.produce(["a"], "n")
    assert api.claim("n").status_code == 201
    headers = key()
    body = {"fields": ["n"], "batch_size": 1, "wait_s": 60}
    for _ in range(2):
        reply = api.send("POST", "tasks/t/claims", body, headers=headers)
        assert (reply.json()["claim"], reply.json()["done"], is_replay(reply)) == (None, True, False)


def test_a_large_body_has_a_digest_too(api: Api) -> None:
    keys = [f"{uuid4().hex}_{i}" for i in range(3000)]
    headers = key()
    first = api.send("POST", "samples", {"keys": keys}, headers=headers)
    assert len(json.dumps({"keys": keys})) > 65_536
    again = api.send("POST", "samples", {"keys": keys}, headers=headers)
    assert (again.content, is_replay(again)) == (first.content, True)
    refused(api.send("POST", "samples", {"keys": keys[::-1]}, headers=headers), 422, "idempotency-mismatch")


@asynccontextmanager
async def client(url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=url, timeout=70, limits=LIMITS) as http:
        yield http


async def parked(http: httpx.AsyncClient, path: str, headers: dict[str, str]) -> "asyncio.Task[httpx.Response]":
    """A claim of one row whose last byte is on its way, and that is looked at before any later call is answered."""
    sent = asyncio.Event()

    async def trace(event: str, _: Any) -> None:
        if event == "http11.send_request_body.complete":
            sent.set()

    body = {"fields": ["n"], "batch_size": 1, "wait_s": 60}
    claim = asyncio.create_task(
        http.post(f"{path}/tasks/t/claims", json=body, headers=headers, extensions={"trace": trace})
    )
    await sent.wait()
    for _ in range(3):
        await http.get(f"{path}/tasks/t/consumption")
    return claim


@pytest.mark.asyncio
async def test_sent_again_while_the_first_waits_it_takes_its_place(api: Api) -> None:
    api.insert("z")
    headers = key()
    async with client(api.url) as http:
        first = await parked(http, api.path, headers)
        next_one = await parked(http, api.path, key())
        second = await parked(http, api.path, headers)
        refused(await first, 409, "idempotency-in-flight", "send it again")
        assert not second.done()
        api.produce(["a"], "n")
        reply = await second
        assert (reply.status_code, reply.json()["batch"]["keys"], is_replay(reply)) == (201, ["a"], False)
        assert not next_one.done()
        third = await http.post(
            f"{api.path}/tasks/t/claims", content=reply.request.content, headers={**headers, **JSON}
        )
        assert (third.content, is_replay(third)) == (reply.content, True)
        api.produce(["b"], "n")
        assert (await next_one).json()["batch"]["keys"] == ["b"]


@pytest.mark.asyncio
async def test_another_request_leaves_the_one_that_waits_alone(api: Api) -> None:
    api.insert("z")
    headers = key()
    async with client(api.url) as http:
        first = await parked(http, api.path, headers)
        refused(api.send("POST", "samples", {"count": 1}, headers=headers), 422, "idempotency-mismatch")
        api.produce(["a"], "n")
        assert (await first).status_code == 201


@pytest.mark.asyncio
async def test_many_at_once_under_one_key_are_one_change(api: Api) -> None:
    api.insert("z")
    headers = key()
    async with client(api.url) as http:
        calls = [http.post(f"{api.path}/samples", json={"count": 1}, headers=headers) for _ in range(30)]
        replies = await asyncio.gather(*calls)
    made = [reply for reply in replies if reply.status_code == 201]
    assert len({reply.content for reply in made}) == 1
    assert [is_replay(reply) for reply in made].count(False) == 1
    for reply in replies:
        if reply.status_code != 201:
            refused(reply, 409, "idempotency-in-flight")
    assert api.ok("GET", "")["num_samples"] == 2


@pytest.fixture
def lived(tmp_path: Any) -> Iterator[Callable[[], Api]]:
    """Start a server on the same journal again and again; each start kills the one before."""
    servers: list[ServerProcess] = []
    apis: list[Api] = []

    def start() -> Api:
        if servers:
            apis[-1].http.close()
            servers[-1].kill()
        servers.append(ServerProcess("--journal", f"file://{tmp_path}/journal"))
        apis.append(Api(servers[-1].url))
        apis[-1].name, apis[-1].path = apis[0].name, apis[0].path
        return apis[-1]

    yield start
    apis[-1].http.close()
    assert servers[-1].stop() == 0


def test_a_restart_forgets_no_reply(lived: Callable[[], Api]) -> None:
    headers = key()
    body = {"fields": ["n"], "batch_size": 2, "include": ["keys", "custom_meta"]}
    made_key = key()
    api = lived()
    made = api.send("PUT", "", {}, headers=made_key)
    api.produce(["a", "b", "c"], "n", custom_meta={"const": {"é": 1.5}})
    first = api.send("POST", "tasks/t/claims", body, headers=headers)
    assert first.status_code == 201
    for _ in range(2):
        api = lived()
        again = api.send("POST", "tasks/t/claims", body, headers=headers)
        assert (again.status_code, again.content, is_replay(again)) == (201, first.content, True)
        remade = api.send("PUT", "", {}, headers=made_key)
        assert (remade.status_code, remade.content) == (201, made.content)
        assert remade.headers["etag"] == made.headers["etag"]
        refused(api.send("POST", "samples", {"count": 1}, headers=headers), 422, "idempotency-mismatch")
        assert api.ok("GET", "tasks/t/consumption")["consumed"] == 2
