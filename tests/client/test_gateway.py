"""Behind a gateway: its own answer says nothing about the outcome of the call, so the call is sent again."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from batchmeta import AsyncClient, ConnectionLost
from tests.client.leasing import LEASE_S, ROWS, Leasing, Naps, leased
from tests.client.service import Clock, Scripted, client, ok, partition, problem
from tests.client.test_retries import AGAIN, CHANGES, KEY, ONCE

GATEWAYS = [500, 501, 502, 503, 504, 520, 408, 429]
LIMIT_S = 30.0


def gateway(status: int, **headers: str) -> httpx.Response:
    return httpx.Response(status, text="<html>no upstream</html>", headers={"Server": "nginx/1.25", **headers})


@pytest.mark.asyncio
@pytest.mark.parametrize("status", GATEWAYS)
@pytest.mark.parametrize("name", [*AGAIN, *ONCE])
async def test_the_same_call_is_sent_again_under_the_same_key(name: str, status: int) -> None:
    script, clock = Scripted(gateway(status)), Clock()
    with pytest.raises(ConnectionLost, match=f": {status} .*nginx/1.25 on the way to the service: '<html>") as raised:
        await (AGAIN | ONCE)[name](client(script, clock.retries(most=2)))
    assert raised.value.status == status
    assert len(script.requests) == (3 if name in AGAIN else 1)
    assert len({(request.content, request.headers.get(KEY)) for request in script.requests}) == 1
    assert (KEY in script.requests[0].headers) == (name in CHANGES)


@pytest.mark.asyncio
async def test_the_call_that_gets_through_gives_its_answer_after_the_usual_pauses() -> None:
    script, clock = Scripted(gateway(502), gateway(504), gateway(503, **{"Retry-After": "7"}), ok(partition())), Clock()
    assert (await client(script, clock.retries()).partition("p")).partition_id == "p"
    assert clock.pauses == pytest.approx([0.1, 0.2, 7.4])


class Gateway:
    """Cuts the first waits after its limit, on a made-up clock; brings all else to the service."""

    def __init__(self, service: Callable[[httpx.Request], httpx.Response], waits: int) -> None:
        self.clock, self.waits, self.keys = Naps(), waits, list[str]()
        self.ready = ok({})
        self._service = service

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/readyz":
            return self.ready
        if not self.waits or not json.loads(request.content).get("wait_s"):
            return self._service(request)
        self.waits -= 1
        self.clock.now += LIMIT_S
        self.keys.append(request.headers[KEY])
        return gateway(504)

    def client(self, **retries: Any) -> AsyncClient:
        return self.clock.client(self, **retries)


async def _looped(client: AsyncClient) -> list[list[int]]:
    found = []
    async for lease in client.claims("p", "t", ["x"], 3, lease_s=LEASE_S, wait_s=60):
        async with lease as batch:
            found.append(list(batch.global_indexes))
    return found


@pytest.mark.asyncio
async def test_a_claim_waits_longer_than_the_gateway_does() -> None:
    way = Gateway(Leasing(leased(*ROWS)), waits=3)
    claim = await way.client().claim("p", "t", ["x"], 3, wait_s=60, lease_s=LEASE_S)
    assert claim.batch.global_indexes == ROWS
    assert len(way.keys) == 3
    assert len(set(way.keys)) == 1


@pytest.mark.asyncio
async def test_a_claim_that_gets_nothing_ends_after_its_wait_and_the_time_for_retries() -> None:
    way = Gateway(Leasing(), waits=1000)
    with pytest.raises(ConnectionLost, match="504"):
        await way.client(within_s=60.0).claim("p", "t", ["x"], 3, wait_s=60)
    assert 60 + 60 <= way.clock.now <= 60 + 60 + LIMIT_S


@pytest.mark.asyncio
async def test_a_loop_waits_on_while_the_service_is_there() -> None:
    way = Gateway(Leasing(leased(*ROWS)), waits=20)
    assert await _looped(way.client()) == [ROWS]
    assert way.waits == 0
    assert len(set(way.keys)) == 1


@pytest.mark.asyncio
@pytest.mark.parametrize("gone", [gateway(502), problem("not-ready")], ids=["gateway", "service"])
async def test_a_loop_ends_when_the_service_is_not_there(gone: httpx.Response) -> None:
    way = Gateway(Leasing(), waits=1000)
    way.ready = gone
    with pytest.raises(ConnectionLost, match="504"):
        await _looped(way.client(within_s=60.0))
    assert way.clock.now < 60 + 60 + LIMIT_S + 10


@pytest.mark.asyncio
async def test_a_loop_whose_sendings_are_bounded_keeps_to_it() -> None:
    way = Gateway(Leasing(), waits=1000)
    with pytest.raises(ConnectionLost, match="504"):
        await _looped(way.client(most=1))
    assert len(way.keys) == 2


@pytest.mark.asyncio
async def test_a_loop_ends_when_its_call_fails_at_once_each_time() -> None:
    calls = Scripted(gateway(502))
    clock = Naps()
    with pytest.raises(ConnectionLost, match="502"):
        await _looped(clock.client(lambda request: ok({}) if request.url.path == "/readyz" else calls(request)))
    assert clock.now <= 60 + 60
