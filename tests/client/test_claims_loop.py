"""`claims()`: which calls it sends, and when, whatever the body does. The clock is a fake."""

import asyncio
import inspect
from typing import Any

import httpx
import pytest

from batchmeta import (
    AsyncClaims,
    AsyncClient,
    ClaimNotFound,
    Client,
    ConnectionLost,
    LeaseLost,
    Overloaded,
    StrandedWarning,
)
from tests.client.leasing import LEASE_S, ROWS, Leasing, Naps, leased, lost, nothing
from tests.client.service import problem


class BodyFailed(Exception):
    pass


def loop(client: AsyncClient, **more: Any) -> AsyncClaims:
    return client.claims("p", "t", ["x"], 3, lease_s=LEASE_S, **more)


async def one_body(client: AsyncClient, error: BaseException | None = None) -> None:
    async for lease in loop(client):
        async with lease:
            if error is not None:
                raise error


@pytest.mark.asyncio
async def test_each_body_that_ends_accepts_its_rows_and_the_loop_ends_when_the_task_is_done() -> None:
    service = Leasing(leased(*ROWS), nothing(), leased(7, number=2))
    seen = []
    async for lease in loop(Naps().client(service), worker="w"):
        async with lease as batch:
            seen.append(list(batch.global_indexes))
            assert lease.batch is batch
    assert seen == [ROWS, [7]]
    assert service.bodies("ack") == [{"accept": ROWS}, {"accept": [7]}]
    assert [verb for verb, _ in service.said] == ["claims", "ack", "claims", "claims", "ack", "claims"]
    asked = {"ack": "explicit", "lease_s": LEASE_S, "worker": "w", "wait_s": 30.0, "fields": ["x"], "batch_size": 3}
    asked |= {"share_columns": True}
    assert service.bodies("claims") == [asked] * 4
    assert len(set(service.keys)) == len(service.keys)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("error", "counts"),
    [(BodyFailed("no"), {"counts": True}), (asyncio.CancelledError(), {})],
    ids=["exception", "cancellation"],
)
async def test_a_body_that_fails_releases_its_rows_and_only_its_own_failure_counts(
    error: BaseException, counts: dict[str, bool]
) -> None:
    service = Leasing(leased(*ROWS))
    with pytest.raises(type(error)) as raised:
        await one_body(Naps().client(service), error)
    assert raised.value is error
    assert service.bodies("ack") == [{"release": ROWS, **counts}]
    assert [verb for verb, _ in service.said] == ["claims", "ack"]


@pytest.mark.asyncio
async def test_rows_that_the_loop_can_never_get_end_it_and_are_told_once() -> None:
    service = Leasing(leased(*ROWS))
    service.claims[-1] = nothing(done=True, stranded=3, filtered=2, exhausted=1)
    claims = loop(Naps().client(service))

    async def bodies() -> None:
        async for lease in claims:
            async with lease:
                assert claims.stranded == 0

    with pytest.warns(StrandedWarning, match=r"'p' ended, and 3 samples .* \(filtered: 2, exhausted: 1\)") as told:
        await bodies()
    assert claims.stranded == 3
    assert [warning.filename for warning in told] == [__file__]
    assert [lease async for lease in claims] == []


@pytest.mark.asyncio
async def test_a_loop_that_leaves_nothing_says_nothing() -> None:
    claims = loop(Naps().client(Leasing(nothing())))
    assert [lease async for lease in claims] == []
    assert claims.stranded == 0


@pytest.mark.asyncio
async def test_a_break_in_the_body_is_no_failure() -> None:
    service = Leasing(leased(*ROWS), leased(*ROWS, number=2))
    async for lease in loop(Naps().client(service)):
        async with lease:
            break
    assert service.bodies("ack") == [{"accept": ROWS}]
    assert len(service.bodies("claims")) == 1


@pytest.mark.asyncio
async def test_the_lease_is_extended_while_the_body_works_and_no_longer() -> None:
    service, naps = Leasing(leased(*ROWS)), Naps()
    async for lease in loop(naps.client(service)):
        async with lease:
            await naps.napping(1)
            assert service.bodies("extend") == []
            await naps.one_passes()
            await naps.one_passes()
            assert service.bodies("extend") == [{"lease_s": LEASE_S}] * 2
        await naps.last_passes()
    assert len(service.bodies("extend")) == 2
    assert naps.naps == [LEASE_S / 3] * 3


@pytest.mark.asyncio
async def test_an_extension_that_does_not_get_through_is_tried_again() -> None:
    service, naps = Leasing(leased(*ROWS)), Naps()
    async for lease in loop(naps.client(service)):
        async with lease:
            await naps.napping(1)
            service.refuse = lambda verb, _: problem("forbidden") if verb == "extend" else None
            await naps.one_passes()
            assert not lease.lost
            service.refuse = lambda verb, _: None
            await naps.one_passes()
    assert len(service.bodies("extend")) == 2
    assert service.bodies("ack") == [{"accept": ROWS}]


@pytest.mark.asyncio
@pytest.mark.parametrize(("answer", "kind"), [(lost(*ROWS), LeaseLost), (problem("claim-not-found"), ClaimNotFound)])
async def test_a_lease_that_was_lost_is_seen_in_the_body_and_raised_at_its_end(
    answer: httpx.Response, kind: type[Exception]
) -> None:
    service, naps = Leasing(leased(*ROWS)), Naps()
    service.refuse = lambda verb, _: None if verb == "claims" else answer
    seen = []

    async def body() -> None:
        async for lease in loop(naps.client(service)):
            async with lease:
                await naps.napping(1)
                seen.append(lease.lost)
                await naps.last_passes()
                seen.append(lease.lost)

    with pytest.raises(kind):
        await body()
    assert seen == [False, True]
    assert service.bodies("ack") == [{"accept": ROWS}]
    assert len(service.bodies("extend")) == 1


@pytest.mark.asyncio
async def test_a_lost_lease_can_be_caught_around_the_body_and_the_loop_goes_on() -> None:
    service = Leasing(leased(*ROWS), leased(7, number=2))
    service.refuse = lambda verb, body: lost(*ROWS) if verb == "ack" and body["token"] == "token 1" else None
    void = []
    async for lease in loop(Naps().client(service)):
        try:
            async with lease:
                pass
        except LeaseLost as error:
            void.append(error.global_indexes)
    assert void == [tuple(ROWS)]
    assert service.bodies("ack") == [{"accept": ROWS}, {"accept": [7]}]


@pytest.mark.asyncio
async def test_rows_settled_in_the_body_are_left_alone_at_its_end() -> None:
    service = Leasing(leased(*ROWS), leased(*ROWS, number=2))
    async for lease in loop(Naps().client(service)):
        async with lease:
            await lease.ack(accept=[4])
            if lease.claim.claim_id == "c2":
                await lease.ack(release=[6], reject={5: "empty"})
    rejected = {"release": [6], "reject": [{"global_index": 5, "reason": "empty"}]}
    assert service.bodies("ack") == [{"accept": [4]}, {"accept": [5, 6]}, {"accept": [4]}, rejected]


@pytest.mark.asyncio
@pytest.mark.parametrize("said", [{}, {"accept": "all"}, {"accept": "all", "release": [4]}])
async def test_after_an_ack_of_all_there_is_nothing_left_to_say(said: dict[str, Any]) -> None:
    service = Leasing(leased(*ROWS))
    async for lease in loop(Naps().client(service)):
        async with lease:
            await lease.ack(**said)
    assert service.bodies("ack") == [said]


@pytest.mark.asyncio
@pytest.mark.parametrize(("error", "verb"), [(None, "accept"), (asyncio.CancelledError(), "release")])
async def test_rows_deleted_meanwhile_keep_the_others_from_nothing(error: BaseException | None, verb: str) -> None:
    service = Leasing(leased(*ROWS))
    service.refuse = lambda said, body: lost(5) if said == "ack" and 5 in body[verb] else None
    if error is None:
        await one_body(Naps().client(service))
    else:
        with pytest.raises(type(error)):
            await one_body(Naps().client(service), error)
    assert service.bodies("ack") == [{verb: ROWS}, {verb: [4, 6]}]


@pytest.mark.asyncio
async def test_rows_that_cannot_be_released_leave_a_note_after_the_clients_own_retries() -> None:
    service = Leasing(leased(*ROWS))
    service.refuse = lambda verb, _: problem("overloaded") if verb == "ack" else None
    with pytest.raises(BodyFailed) as raised:
        await one_body(Naps().client(service, most=2), BodyFailed())
    assert "c1 was not released" in raised.value.__notes__[0]
    assert len(service.bodies("ack")) == 3


@pytest.mark.asyncio
async def test_a_service_that_is_away_for_long_is_waited_for_under_one_key() -> None:
    service, naps = Leasing(leased(*ROWS)), Naps()
    away = ["claims"] * 11 + ["ack"] * 11

    def gone(verb: str, _: Any) -> httpx.Response | None:
        if away and away[0] == verb:
            raise httpx.ConnectError(away.pop(0))
        return None

    service.refuse = gone
    await one_body(naps.client(service))
    assert away == []
    assert [len(service.bodies(verb)) for verb in ("claims", "ack")] == [13, 12]
    assert len(set(service.keys)) == 3


@pytest.mark.asyncio
async def test_it_is_not_waited_for_longer_than_the_retries_allow() -> None:
    service, naps = Leasing(), Naps()
    service.refuse = lambda verb, _: problem("overloaded", headers={"Retry-After": "7"})
    with pytest.raises(Overloaded):
        await one_body(naps.client(service, within_s=200.0))
    # The long poll of 30 s is on top.
    assert 215 < naps.now <= 230
    assert len(service.said) > 5


@pytest.mark.asyncio
async def test_a_client_that_never_sends_twice_does_not_in_a_loop_either() -> None:
    service = Leasing()

    def gone(verb: str, _: Any) -> httpx.Response:
        raise httpx.ConnectError(verb)

    service.refuse = gone
    with pytest.raises(ConnectionLost):
        await one_body(Naps().client(service, most=0))
    assert len(service.said) == 1


@pytest.mark.asyncio
async def test_a_sampler_may_depend_on_the_number_of_the_claim() -> None:
    service = Leasing(leased(4), nothing(), leased(5, number=2))
    sampler = {"name": "sequential"}
    numbers = []

    def of(number: int) -> dict[str, Any]:
        numbers.append(number)
        return sampler

    async for lease in loop(Naps().client(service), sampler=of):
        async with lease:
            pass
    assert numbers == [0, 1, 1, 2]
    assert {body["sampler"]["name"] for body in service.bodies("claims")} == {"sequential"}


@pytest.mark.asyncio
async def test_a_loop_that_would_not_wait_is_refused() -> None:
    with pytest.raises(ValueError, match="wait_s"):
        loop(Naps().client(Leasing()), wait_s=0)


@pytest.mark.asyncio
async def test_a_lease_is_entered_once() -> None:
    async for lease in loop(Naps().client(Leasing(leased(*ROWS)))):
        async with lease:
            with pytest.raises(RuntimeError, match="once"):
                await lease.__aenter__()


def test_the_blocking_loop_takes_the_same() -> None:
    ours, twin = inspect.signature(AsyncClient.claims), inspect.signature(Client.claims)
    assert ours.parameters == twin.parameters


def test_the_loop_takes_what_a_claim_takes() -> None:
    one, loop = inspect.signature(AsyncClient.claim), inspect.signature(AsyncClient.claims)
    assert set(loop.parameters) == set(one.parameters) - {"idempotency_key"}, "a key is for one call"
