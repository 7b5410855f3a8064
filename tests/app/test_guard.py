"""The guard alone, before an application that answers anything: readiness, hosts and headers at every state."""

import gc
from dataclasses import dataclass, replace
from typing import Any, cast
from weakref import ref

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from app.application import build, new_edge
from app.guard import Guard
from app.settings import load
from core.runtime.executor import Executor, Reading

from .service import refused

READY = Reading(None, 7, 3, 0, 0)


@dataclass
class StandIn:
    """As much of an executor as the guard and the health routes see."""

    reading: Reading = READY


async def nothing() -> None:
    pass


async def anything(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("reached")(scope, receive, send)


async def call(guard: Guard, method: str, path: str, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(guard), base_url="http://localhost") as http:
        return await http.request(method, path, headers=headers)


def guard(executor: StandIn, *hosts: str) -> Guard:
    return Guard(anything, cast(Executor, executor), hosts)


@pytest.mark.asyncio
async def test_what_passes_is_named_and_carries_the_epoch() -> None:
    reply = await call(guard(StandIn()), "POST", "/v1/partitions/p/samples")
    assert reply.text == "reached"
    assert reply.headers["x-epoch"] == "3"
    assert reply.headers["x-request-id"]


class Cycle:
    """As uvicorn's: one request, which holds its scope, and whose method is `send`."""

    def __init__(self) -> None:
        headers = [(b"host", b"localhost")]
        self.scope: Scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": headers}
        self.sent: list[Message] = []

    async def receive(self) -> Message:
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)


@pytest.mark.asyncio
@pytest.mark.parametrize("host", [b"localhost", b"elsewhere"])
async def test_a_request_leaves_nothing_that_the_collector_would_have_to_find(host: bytes) -> None:
    cycle = Cycle()
    cycle.scope["headers"] = [(b"host", host)]
    is_there = ref(cycle)
    gc.disable()
    try:
        await guard(StandIn())(cycle.scope, cycle.receive, cycle.send)
        assert cycle.sent[0]["status"] == (200 if host == b"localhost" else 403)
        del cycle
        assert is_there() is None
    finally:
        gc.enable()


@pytest.mark.asyncio
async def test_until_the_journal_is_replayed_all_but_health_is_503_with_the_reason() -> None:
    settings = load(["--journal", "memory:"], {})
    executor = StandIn(replace(READY, reason="replaying the journal"))
    edge = new_edge(cast(Executor, executor), settings, "cpu", "wal", 0.0)
    app = build(cast(Executor, executor), settings, edge, lambda: None, nothing)
    assert (await call(app, "GET", "/healthz")).json() == {"status": "ok"}
    for path in ("/readyz", "/v1/server", "/v1/partitions", "/docs", "/openapi.json", "/nowhere"):
        reply = await call(app, "GET", path)
        problem = refused(reply, 503, "not-ready", "replaying the journal")
        assert problem["reason"] == "replaying the journal"
        assert int(reply.headers["retry-after"]) >= 1
    executor.reading = READY
    assert (await call(app, "GET", "/readyz")).json() == {"status": "ready"}


@pytest.mark.asyncio
async def test_a_bug_is_a_500_problem_that_names_the_request() -> None:
    settings = load(["--journal", "memory:"], {})
    executor = StandIn()
    edge = new_edge(cast(Executor, executor), settings, "cpu", "wal", 0.0)
    app = build(cast(Executor, executor), settings, edge, lambda: None, nothing)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        reply = await http.get("/v1/partitions")
    assert refused(reply, 500, "internal", "request_id")["retryable"] is False
    assert reply.headers["connection"] == "close"


@pytest.mark.asyncio
async def test_the_bound_address_and_the_allowed_hosts_are_known_names() -> None:
    ours = guard(StandIn(), "10.0.0.1", "batchmeta.example")
    for host in ("10.0.0.1:8700", "Batchmeta.Example", "localhost", "[::1]:1"):
        assert (await call(ours, "GET", "/", Host=host)).status_code == 200
    for host in ("10.0.0.2", "example", "a.batchmeta.example", "batchmeta.example.evil"):
        refused(await call(ours, "GET", "/", Host=host), 403, "forbidden", host)


@pytest.mark.asyncio
async def test_a_star_allows_any_host_but_no_foreign_origin() -> None:
    ours = guard(StandIn(), "*")
    assert (await call(ours, "POST", "/", Host="any.example")).status_code == 200
    refused(await call(ours, "POST", "/", Host="any.example", Origin="http://evil.example"), 403, "forbidden")


@pytest.mark.asyncio
@pytest.mark.parametrize("site", ["same-origin", "same-site", "none"])
async def test_pages_of_our_own_site_may_change_things(site: str) -> None:
    headers: dict[str, Any] = {"Sec-Fetch-Site": site, "Origin": "http://localhost"}
    assert (await call(guard(StandIn()), "POST", "/", **headers)).status_code == 200


@pytest.mark.asyncio
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
async def test_a_foreign_page_may_be_looked_at_from_for_nothing_changes(method: str) -> None:
    headers: dict[str, Any] = {"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.example"}
    assert (await call(guard(StandIn()), method, "/", **headers)).status_code == 200


@pytest.mark.asyncio
async def test_another_port_of_the_same_host_is_another_origin() -> None:
    reply = await call(guard(StandIn()), "POST", "/", Host="localhost:8700", Origin="http://localhost:3000")
    refused(reply, 403, "forbidden", "origin")
