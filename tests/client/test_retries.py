"""Which calls are sent again, when, under which key, and after which pause. Table-tested for every call."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import httpx
import pytest

from batchmeta import AsyncClient, ConnectionLost, Overloaded, Problem, Retries, TooManySamples
from batchmeta.retries import FEW
from tests.client.service import Answer, Clock, Scripted, client, ok, partition, problem

Run = Callable[..., Awaitable[Any]]

CHANGES: dict[str, Run] = {
    "put_partition": lambda c, **key: c.put_partition("p", **key),
    "delete_partition": lambda c, **key: c.delete_partition("p", **key),
    "insert": lambda c, **key: c.insert("p", count=1, **key),
    "insert by keys": lambda c, **key: c.insert("p", keys=["a"], **key),
    "produce": lambda c, **key: c.produce("p", {}, keys=["a"], **key),
    "patch_custom_meta": lambda c, **key: c.patch_custom_meta("p", [{}], keys=["a"], **key),
    "patch_backend_meta": lambda c, **key: c.patch_backend_meta("p", {}, keys=["a"], **key),
    "delete": lambda c, **key: c.delete("p", keys=["a"], **key),
    "claim": lambda c, **key: c.claim("p", "t", ["x"], 1, **key),
    "reset": lambda c, **key: c.reset("p", **key),
    "patch_partition": lambda c, **key: c.patch_partition("p", max_samples=1, **key),
    "seal": lambda c, **key: c.seal("p", **key),
    "ack": lambda c, **key: c.ack("c1", "token", **key),
    "extend": lambda c, **key: c.extend("c1", "token", 5.0, **key),
    "release_worker": lambda c, **key: c.release_worker("w", **key),
    "plan_clear": lambda c, **key: c.plan_clear("p", all_rows=True, **key),
    "commit_clear": lambda c, **key: c.commit_clear("x1", **key),
    "revoke": lambda c, **key: c.revoke("p", ["x"], keys=["a"], **key),
    "abort_clear": lambda c, **key: c.abort_clear("x1", **key),
    "create_checkpoint": lambda c, **key: c.create_checkpoint("s", **key),
    "delete_checkpoint": lambda c, **key: c.delete_checkpoint("s", **key),
    "restore_checkpoint": lambda c, **key: c.restore_checkpoint("s", **key),
}
READS: dict[str, Run] = {
    "partition": lambda c: c.partition("p"),
    "tagged_partition": lambda c: c.tagged_partition("p"),
    "partitions": lambda c: c.partitions(),
    "read": lambda c: c.read("p"),
    "read_backend_meta": lambda c: c.read_backend_meta("p"),
    "production": lambda c: c.production("p", ["x"]),
    "lookup_keys": lambda c: c.lookup_keys("p", [1]),
    "keys": lambda c: c.keys("p"),
    "key_changes": lambda c: c.key_changes("p", 1),
    "consumption": lambda c: c.consumption("p", "t"),
    "server": lambda c: c.server(),
    "explain": lambda c: c.explain("p", "t", ["x"], 1),
    "open_claims": lambda c: c.open_claims(),
    "seen_claim": lambda c: c.seen_claim("c1"),
    "dead": lambda c: c.dead("p", "t"),
    "clears": lambda c: c.clears(),
    "seen_clear": lambda c: c.seen_clear("x1"),
    "checkpoints": lambda c: c.checkpoints(),
    "checkpoint": lambda c: c.checkpoint("s"),
    "download_checkpoint": lambda c: c.download_checkpoint("s", "nowhere"),
}
WITHOUT_KEY: dict[str, Run] = {"upload_checkpoint": lambda c: c.upload_checkpoint("s", __file__)}
AGAIN = CHANGES | READS | WITHOUT_KEY
ONCE: dict[str, Run] = {"ready": lambda c: c.ready()}
KEY = "Idempotency-Key"
LOST: list[Callable[[], Answer]] = [
    lambda: httpx.ReadError("broken off"),
    lambda: httpx.ReadTimeout("timed out"),
    lambda: httpx.ConnectError("refused"),
    lambda: httpx.RemoteProtocolError("left without an answer"),
]
PASSING = [
    "internal",
    "overloaded",
    "not-ready",
    "journal-unavailable",
    "too-many-samples",
    "too-many-waiting",
    "idempotency-in-flight",
]


def test_the_tables_name_every_call() -> None:
    calls = {name for name, _ in inspect.getmembers(AsyncClient, inspect.iscoroutinefunction) if name[0] != "_"}
    assert {name.split()[0] for name in AGAIN | ONCE} == calls - {"aclose"}


@pytest.mark.asyncio
@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("name", AGAIN)
async def test_sent_again_when_no_answer_came(name: str, lost: Callable[[], Answer]) -> None:
    script, clock = Scripted(lost()), Clock()
    with pytest.raises(ConnectionLost):
        await AGAIN[name](client(script, clock.retries(most=2)))
    assert len(script.requests) == 3
    assert len({request.content for request in script.requests}) == 1
    assert len({request.headers.get(KEY) for request in script.requests}) == 1


@pytest.mark.asyncio
@pytest.mark.parametrize("name", CHANGES)
async def test_each_call_that_changes_something_has_a_key_of_its_own(name: str) -> None:
    script, clock = Scripted(problem("forbidden")), Clock()
    service = client(script, clock.retries())
    for _ in range(2):
        with pytest.raises(Problem):
            await CHANGES[name](service)
    first, second = (request.headers[KEY] for request in script.requests)
    assert first != second
    assert UUID(first).version == UUID(second).version == 4


@pytest.mark.asyncio
@pytest.mark.parametrize("name", CHANGES)
async def test_the_callers_key_is_sent_with_each_retry(name: str) -> None:
    script, clock = Scripted(httpx.ReadError("x")), Clock()
    with pytest.raises(ConnectionLost):
        await CHANGES[name](client(script, clock.retries(most=1)), idempotency_key="step 7")
    assert [request.headers[KEY] for request in script.requests] == ["step 7"] * 2


@pytest.mark.asyncio
@pytest.mark.parametrize("key", ["", "x" * 201, "\xe9", "a\nb", " a", "a "])
async def test_what_is_no_key_is_refused_before_it_is_sent(key: str) -> None:
    script = Scripted(problem("internal"))
    with pytest.raises(ValueError, match="idempotency_key"):
        await client(script).insert("p", count=1, idempotency_key=key)
    assert not script.requests


@pytest.mark.asyncio
@pytest.mark.parametrize("name", [*READS, *ONCE])
async def test_a_read_has_no_key(name: str) -> None:
    script = Scripted(problem("internal"))
    with pytest.raises(Problem):
        await (READS | ONCE)[name](client(script))
    assert KEY not in script.requests[0].headers


@pytest.mark.asyncio
@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("name", ONCE)
async def test_never_sent_again(name: str, lost: Callable[[], Answer]) -> None:
    script, clock = Scripted(lost()), Clock()
    with pytest.raises(ConnectionLost):
        await ONCE[name](client(script, clock.retries()))
    assert len(script.requests) == 1
    assert not clock.pauses


@pytest.mark.asyncio
@pytest.mark.parametrize("code", PASSING)
@pytest.mark.parametrize("name", [*AGAIN, *ONCE])
async def test_what_passes_is_waited_for_by_the_same_calls(name: str, code: str) -> None:
    script, clock = Scripted(problem(code)), Clock()
    if (name, code) == ("ready", "not-ready"):
        assert not await ONCE[name](client(script, clock.retries(most=1)))
    else:
        with pytest.raises(Problem, match=code):
            await (AGAIN | ONCE)[name](client(script, clock.retries(most=1)))
    assert len(script.requests) == (2 if name in AGAIN else 1)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "code", ["invalid-request", "forbidden", "sample-cleared", "partition-conflict", "idempotency-mismatch"]
)
async def test_what_does_not_pass_is_raised_at_once(code: str) -> None:
    script, clock = Scripted(problem(code)), Clock()
    with pytest.raises(Problem, match=code):
        await client(script, clock.retries()).put_partition("p")
    assert len(script.requests) == 1


@pytest.mark.asyncio
async def test_a_call_that_gets_through_gives_its_answer() -> None:
    script, clock = Scripted(httpx.ReadError("x"), problem("overloaded"), ok(partition())), Clock()
    assert (await client(script, clock.retries()).partition("p")).partition_id == "p"
    assert clock.pauses == [0.1, 0.2]


@pytest.mark.asyncio
async def test_pauses_double_up_to_the_longest_and_end_with_most() -> None:
    script, clock = Scripted(httpx.ReadError("x")), Clock()
    with pytest.raises(ConnectionLost, match="GET /v1/partitions/p: ReadError x"):
        await client(script, clock.retries(most=8)).partition("p")
    assert clock.pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0])


@pytest.mark.asyncio
async def test_no_sending_begins_after_the_time_for_it() -> None:
    script, clock = Scripted(httpx.ReadError("x")), Clock()
    with pytest.raises(ConnectionLost):
        await client(script, clock.retries(most=100, within_s=2.0)).partition("p")
    assert clock.pauses == pytest.approx([0.1, 0.2, 0.4, 0.8])
    assert clock.now <= 2.0


@pytest.mark.asyncio
async def test_what_a_call_waits_on_purpose_is_not_counted() -> None:
    clock = Clock()

    def lost_after_its_wait(_: httpx.Request) -> httpx.Response:
        clock.now += 61.0
        raise httpx.ReadTimeout("timed out")

    script = Scripted(httpx.ReadError("x"))
    service = client(
        lambda request: (script.requests.append(request), lost_after_its_wait(request))[1], clock.retries()
    )
    with pytest.raises(ConnectionLost):
        await service.claim("p", "t", ["x"], 1, wait_s=60)
    with pytest.raises(ConnectionLost):
        await service.claim("p", "t", ["x"], 1)
    assert len(script.requests) == 2 + 1


@pytest.mark.asyncio
async def test_at_least_as_long_as_retry_after_asks() -> None:
    script, clock = Scripted(problem("overloaded", headers={"Retry-After": "7"}), ok(partition())), Clock()
    await client(script, clock.retries()).partition("p")
    assert clock.pauses == [7.1]


@pytest.mark.asyncio
async def test_a_retry_after_beyond_the_time_is_left_to_the_caller() -> None:
    script, clock = Scripted(problem("overloaded", headers={"Retry-After": "600"})), Clock()
    with pytest.raises(Overloaded) as raised:
        await client(script, clock.retries()).partition("p")
    assert raised.value.retry_after_s == 600
    assert not clock.pauses


@pytest.mark.parametrize(("drawn", "pause"), [(0.0, 0.05), (0.5, 0.075), (1.0, 0.1)])
def test_jitter_is_between_half_and_all(drawn: float, pause: float) -> None:
    retries = Retries(random=lambda: drawn)
    assert retries.pause(ConnectionLost(), 1, 0.0) == pytest.approx(pause)


@pytest.mark.asyncio
async def test_retries_can_be_switched_off() -> None:
    script = Scripted(httpx.ReadError("x"))
    with pytest.raises(ConnectionLost):
        await client(script, Retries(most=0)).partition("p")
    assert len(script.requests) == 1


@pytest.mark.asyncio
async def test_a_full_partition_is_waited_for_as_long_as_the_caller_says() -> None:
    script, clock = Scripted(problem("too-many-samples", headers={"Retry-After": "1"})), Clock()
    with pytest.raises(TooManySamples) as raised:
        await client(script, clock.retries(within_s=60.0)).insert("p", count=1)
    assert 54 < clock.now <= 60
    assert raised.value.__notes__ == [f"sent {len(script.requests)} times within {clock.now:.1f} s"]


@pytest.mark.asyncio
async def test_a_call_that_takes_long_to_get_through_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    script, clock = Scripted(httpx.ReadError("x")), Clock()
    with pytest.raises(ConnectionLost):
        await client(script, clock.retries(most=FEW - 1)).partition("p")
    assert caplog.messages == []
    with pytest.raises(ConnectionLost) as raised:
        await client(script, clock.retries()).partition("p")
    assert caplog.messages == [f"{raised.value}; it is sent again for up to 60 s"]


@pytest.mark.asyncio
async def test_what_the_service_calls_not_retryable_is_not_sent_again() -> None:
    script = Scripted(problem("too-many-samples", retryable=False))
    with pytest.raises(TooManySamples):
        await client(script).insert("p", count=1)
    assert len(script.requests) == 1


def test_there_is_no_last_sending_but_a_last_moment() -> None:
    retries = Retries(random=lambda: 1.0)
    assert retries.pause(ConnectionLost(), 100_000, 55.0) == 5.0
    assert retries.pause(ConnectionLost(), 2, 60.0) is None
    assert Retries(most=0).pause(ConnectionLost(), 1, 0.0) is None


@pytest.mark.parametrize(("most", "hasty"), [(None, FEW), (0, 0), (100, 100)])
def test_hasty_ones_are_few_unless_the_caller_says_how_many(most: int | None, hasty: int) -> None:
    assert Retries(most=most).hasty().most == hasty
