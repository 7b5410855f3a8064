"""A claim with `wait_s` parks: woken by the write that completes it, or by its deadline, its client's leave, the end of
its partition. No test measures time: a wait of 60 s that is answered was woken; 0.05 s is a deadline.
"""

import asyncio
import json
import select
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from tests.conftest import DEADLINE_S, ServerProcess

from .service import Api, answer, connect, head, post, refused

MANY = 200
LIMITS = httpx.Limits(max_connections=None)


@asynccontextmanager
async def client(url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=url, timeout=70, limits=LIMITS) as http:
        yield http


def wanted(size: int = 1, **more: Any) -> dict[str, Any]:
    return {"fields": ["n"], "batch_size": size, "wait_s": 60, **more}


async def parked(http: httpx.AsyncClient, path: str, **more: Any) -> "asyncio.Task[httpx.Response]":
    """A claim whose last byte is on its way to the server."""
    sent = asyncio.Event()

    async def trace(event: str, _: Any) -> None:
        if event == "http11.send_request_body.complete":
            sent.set()

    body = wanted(**more)
    claim = asyncio.create_task(http.post(f"{path}/tasks/t/claims", json=body, extensions={"trace": trace}))
    await sent.wait()
    return claim


async def settled(http: httpx.AsyncClient, path: str, *claims: "asyncio.Task[httpx.Response]") -> None:
    """Later calls go all the way to the engine and back; none of the claims is answered."""
    for _ in range(3):
        await http.get(f"{path}/tasks/t/consumption")
    assert not any(claim.done() for claim in claims)


@pytest.mark.asyncio
async def test_a_claim_waits_for_the_write_that_completes_its_batch(api: Api) -> None:
    async with client(api.url) as http:
        claim = await parked(http, api.path, size=2)
        await settled(http, api.path, claim)
        api.produce(["a"], "n")
        await settled(http, api.path, claim)
        api.produce(["b"], "n")
        reply = await claim
        assert reply.status_code == 201
        assert reply.json()["batch"]["keys"] == ["a", "b"]


@pytest.mark.asyncio
async def test_a_claim_waits_for_a_partition_and_a_field_that_are_not_there_yet(api: Api) -> None:
    async with client(api.url) as http:
        claim = await parked(http, api.path)
        await settled(http, api.path, claim)
        api.insert("a")
        api.produce(["a"], "other")
        await settled(http, api.path, claim)
        api.produce(["a"], "n")
        assert (await claim).status_code == 201


def test_at_the_deadline_fewer_go_out_if_they_are_enough(api: Api) -> None:
    api.produce(["a", "b", "c"], "n")
    reply = api.claim("n", size=4, min_batch_size=2, wait_s=0.05)
    assert (reply.status_code, reply.json()["batch"]["size"]) == (201, 3)


def test_at_the_deadline_too_few_stay_and_the_answer_says_why(api: Api) -> None:
    api.produce(["a"], "n")
    reply = api.claim("n", size=4, min_batch_size=2, wait_s=0.05)
    body = reply.json()
    assert (reply.status_code, body["claim"], body["ready"], body["wanted"]) == (200, None, 1, 4)
    assert api.claim("n").status_code == 201


@pytest.mark.asyncio
async def test_the_end_of_its_partition_ends_a_wait(api: Api) -> None:
    api.insert("a")
    async with client(api.url) as http:
        claims = [await parked(http, api.path) for _ in range(3)]
        await settled(http, api.path, *claims)
        api.ok("DELETE", "")
        for reply in await asyncio.gather(*claims):
            refused(reply, 410, "partition-cleared")
    refused(api.claim("n", wait_s=60), 410, "partition-cleared")


@pytest.mark.asyncio
async def test_done_ends_every_wait(api: Api) -> None:
    api.ok("PUT", "", {"expected_samples": 2})
    api.produce(["a"], "n")
    async with client(api.url) as http:
        claims = [await parked(http, api.path, size=2) for _ in range(3)]
        await settled(http, api.path, *claims)
        api.produce(["b"], "n")
        replies = await asyncio.gather(*claims)
    assert sorted(reply.status_code for reply in replies) == [200, 200, 201]
    assert all(reply.json()["done"] for reply in replies if reply.status_code == 200)
    body = api.claim("n", wait_s=60).json()
    assert (body["claim"], body["done"]) == (None, True)


@pytest.mark.asyncio
async def test_two_hundred_who_wait_hold_up_nobody_and_each_gets_its_own_row(api: Api) -> None:
    api.insert("first")
    async with client(api.url) as http:
        claims = [await parked(http, api.path) for _ in range(MANY)]
        await settled(http, api.path, *claims)
        other = Api(api.url)
        with other.http:
            other.produce(["x"], "n")
            assert other.claim("n").status_code == 201
        assert api.claim("n", task="u").json()["claim"] is None
        assert not any(claim.done() for claim in claims)
        api.produce([f"k{i}" for i in range(MANY)], "n")
        replies = await asyncio.gather(*claims)
    taken = [index for reply in replies for index in reply.json()["batch"]["global_indexes"]]
    assert len(set(taken)) == len(taken) == MANY


@pytest.mark.asyncio
async def test_the_oldest_is_served_first_and_a_larger_one_holds_up_no_smaller(api: Api) -> None:
    api.insert("z")
    async with client(api.url) as http:
        large = await parked(http, api.path, size=3)
        await settled(http, api.path, large)
        first = await parked(http, api.path)
        await settled(http, api.path, first)
        second = await parked(http, api.path)
        await settled(http, api.path, large, first, second)
        api.produce(["a"], "n")
        assert (await first).json()["batch"]["keys"] == ["a"]
        await settled(http, api.path, large, second)
        api.produce(["b"], "n")
        assert (await second).json()["batch"]["keys"] == ["b"]
        api.produce(["c", "d", "e"], "n")
        assert (await large).json()["batch"]["keys"] == ["c", "d", "e"]


@pytest.fixture(scope="module")
def narrow_url() -> Iterator[str]:
    """A server where one call of a client may wait: whoever is turned away knows that another is parked."""
    server = ServerProcess("--journal", "memory:", "--max-waiting-per-client", "1")
    yield server.url
    assert server.stop() == 0


@pytest.fixture
def narrow(narrow_url: str) -> Iterator[Api]:
    api = Api(narrow_url)
    with api.http:
        yield api


def park(api: Api, connection: socket.socket, behind: bytes = b"") -> httpx.Response:
    """A claim parked on this connection; the reply of another that was turned away, since one is there already.

    `behind` comes at once after the claim.
    """
    deadline = time.monotonic() + DEADLINE_S
    connection.sendall(waiting_claim(api) + behind)
    while (reply := api.claim("n", wait_s=0.01)).status_code != 429:
        assert time.monotonic() < deadline
        if select.select([connection], [], [], 0)[0]:  # it came while the other waited, and was the one turned away
            assert answer(connection).status_code == 429
            connection.sendall(waiting_claim(api) + behind)
    return reply


def until_there_is_room(api: Api) -> None:
    """The claim that was parked is known to be gone, before its own wait of 60 s ends and makes room too."""
    deadline = time.monotonic() + 50
    while api.claim("n", wait_s=0.01).status_code == 429:
        assert time.monotonic() < deadline


def test_too_many_waiting_calls_of_one_client_are_turned_away_until_one_ends(narrow: Api) -> None:
    with connect(narrow.url) as connection:
        reply = park(narrow, connection)
        refused(reply, 429, "too-many-waiting", "waiting")
        assert int(reply.headers["retry-after"]) >= 1
        assert narrow.claim("n").status_code == 200
        narrow.produce(["a"], "n")
        assert answer(connection).status_code == 201
    until_there_is_room(narrow)


@pytest.mark.parametrize("behind", [b"", head("GET", "/healthz")], ids=["alone", "with-another"])
@pytest.mark.parametrize("linger", [None, b"\1\0\0\0\0\0\0\0"], ids=["closed", "reset"])
def test_a_client_that_leaves_while_parked_takes_nothing(narrow: Api, linger: bytes | None, behind: bytes) -> None:
    narrow.insert("a")
    with connect(narrow.url) as connection:
        if linger is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        park(narrow, connection, behind)
    until_there_is_room(narrow)
    narrow.produce(["a"], "n")
    assert narrow.ok("GET", "tasks/t/consumption")["consumed"] == 0
    assert narrow.claim("n").status_code == 201


def test_a_client_that_closes_its_sending_side_while_parked_is_told_and_takes_nothing(narrow: Api) -> None:
    narrow.insert("a")
    with connect(narrow.url) as connection:
        park(narrow, connection)
        connection.shutdown(socket.SHUT_WR)
        refused(answer(connection), 422, "invalid-request", "connection", "sending side")
    until_there_is_room(narrow)
    narrow.produce(["a"], "n")
    assert narrow.ok("GET", "tasks/t/consumption")["consumed"] == 0
    assert narrow.claim("n").status_code == 201


def waiting_claim(api: Api, wait_s: float = 60) -> bytes:
    """The bytes of a claim that waits."""
    body = json.dumps(wanted(wait_s=wait_s)).encode()
    return post(f"{api.path}/tasks/t/claims", body)


def test_a_second_request_on_the_line_is_not_taken_for_a_leave(api: Api) -> None:
    with connect(api.url) as connection:
        connection.sendall(waiting_claim(api, 0.05) + head("GET", "/healthz"))
        assert answer(connection).json()["claim"] is None
