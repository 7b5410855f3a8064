"""The transport of the extra `fast`: what it makes of answers, broken ones too, and when it uses a connection again."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx
import pytest

from batchmeta.calls import Call, change
from batchmeta.fast import BUFFER, FastTransport

END = b"\r\n\r\n"
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ASK = Call("GET", "/v1/x")


class Peer:
    """Writes the next of its answers at each request; after one that ends with None it closes the connection."""

    def __init__(self, *answers: list[bytes | None]) -> None:
        self.answers, self.requests, self.connections = list(answers), list[bytes](), 0
        self.closed = asyncio.Event()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while self.answers:
                self.requests.append(await reader.readuntil(END))
                for part in self.answers.pop(0):
                    if part is None:
                        return
                    writer.write(part)
                    await writer.drain()
            await reader.read()
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()
            self.closed.set()


@asynccontextmanager
async def _peer(*answers: list[bytes | None], silence_s: float = 20.0) -> AsyncIterator[tuple[Peer, FastTransport]]:
    peer = Peer(*answers)
    server = await asyncio.start_server(peer.talk, "127.0.0.1", 0)
    url = httpx.URL(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/meta")
    transport = FastTransport(url, silence_s, 20.0, None)
    try:
        yield peer, transport
    finally:
        await transport.aclose()
        server.close()
        await server.wait_closed()


async def _until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110 - what is waited for has no event
        await asyncio.sleep(0)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "parts",
    [
        [PLAIN],
        [PLAIN[:20], PLAIN[20:-1], PLAIN[-1:]],
        [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + PLAIN],
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n", b"0\r\n\r\n"],
    ],
    ids=["whole", "in pieces", "after others", "chunked"],
)
async def test_an_answer_is_read_and_the_connection_used_again(parts: list[bytes | None]) -> None:
    async with _peer(parts, [PLAIN]) as (peer, transport):
        for _ in range(2):
            answer = await transport.exchange(ASK, None)
            assert (answer.status_code, answer.content, answer.reason_phrase) == (200, b"ok", "OK")
    assert peer.connections == 1
    assert peer.requests[0].startswith(b"GET /meta/v1/x HTTP/1.1\r\nHost: 127.0.0.1:")


@pytest.mark.asyncio
async def test_two_large_answers_at_once_do_not_mix() -> None:
    """Connections receive into one buffer; each of these answers fills it several times."""
    bodies = [letter * (3 * BUFFER + 7) for letter in (b"a", b"b")]
    answers: list[list[bytes | None]] = [
        [
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body),
            *(body[at : at + 50_000] for at in range(0, len(body), 50_000)),
        ]
        for body in bodies
    ]
    async with _peer(*answers) as (peer, transport):
        found = await asyncio.gather(*(transport.exchange(ASK, None) for _ in bodies))
    assert peer.connections == 2
    assert sorted(answer.content for answer in found) == bodies


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "parts",
    [
        [b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"],
        [b"HTTP/1.1 200 OK\r\n\r\no", b"k", None],
        [b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"],
    ],
    ids=["said so", "without a length", "of HTTP/1.0"],
)
async def test_after_the_last_answer_of_a_connection_comes_another_connection(parts: list[bytes | None]) -> None:
    async with _peer(parts, [PLAIN]) as (peer, transport):
        assert (await transport.exchange(ASK, None)).content == b"ok"
        assert (await transport.exchange(ASK, None)).content == b"ok"
    assert peer.connections == 2


@pytest.mark.asyncio
async def test_what_is_said_without_being_asked_ends_the_connection() -> None:
    late = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"
    async with _peer([PLAIN + late], [PLAIN]) as (peer, transport):
        for _ in range(2):
            assert (await transport.exchange(ASK, None)).status_code == 200
            await peer.closed.wait()
    assert peer.connections == 2


@pytest.mark.asyncio
async def test_a_packed_body_is_unpacked() -> None:
    body = gzip.compress(b'{"a":1}')
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nETag: e\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with _peer([head + body], [head + b"x" * len(body)]) as (_, transport):
        answer = await transport.exchange(ASK, None)
        assert (json.loads(answer.content), answer.headers["etag"], answer.text) == ({"a": 1}, "e", '{"a":1}')
        with pytest.raises(httpx.DecodingError):
            await transport.exchange(ASK, None)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", None], httpx.RemoteProtocolError),
        ([b"HTTP/1.1 200 OK\r\nContent-Le", None], httpx.RemoteProtocolError),
        ([b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"], httpx.RemoteProtocolError),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"], httpx.RemoteProtocolError),
        ([None], httpx.RemoteProtocolError),
    ],
    ids=["cut body", "cut head", "upgrade", "no length", "nothing"],
)
async def test_what_is_no_whole_answer_is_an_error_and_ends_the_connection(
    parts: list[bytes | None], error: type[Exception]
) -> None:
    async with _peer(parts, [PLAIN]) as (peer, transport):
        with pytest.raises(error):
            await transport.exchange(ASK, None)
        assert (await transport.exchange(ASK, None)).content == b"ok"
    assert peer.connections == 2


@pytest.mark.asyncio
async def test_silence_ends_a_call_and_a_cancelled_one_ends_its_connection() -> None:
    async with _peer([b"HTTP/1.1 200 OK\r\n"], [b""], [PLAIN], silence_s=0.02) as (peer, transport):
        with pytest.raises(httpx.ReadTimeout):
            await transport.exchange(ASK, None)
        waiting = asyncio.create_task(transport.exchange(Call("GET", "/v1/x", wait_s=60), None))
        await _until(lambda: len(peer.requests) == 2)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (await transport.exchange(Call("GET", "/v1/x", wait_s=60), None)).content == b"ok"
    assert peer.connections == 3


@pytest.mark.asyncio
async def test_an_answer_that_comes_slowly_is_no_silence() -> None:
    times = iter(range(0, 1000, 10))
    async with _peer([PLAIN[:9], PLAIN[9:20]], silence_s=15.0) as (_, transport):
        waiting = asyncio.create_task(transport.exchange(ASK, None))
        await _until(lambda: any(connection._reason for connection in transport._open))
        (connection,) = transport._open
        _clock(connection, lambda: next(times))
        connection._heard = 0
        connection._look()  # at 0 s: 15 more
        connection.buffer_updated(0)  # at 10 s
        connection._look()  # at 20 s: 5 more, since a byte came at 10
        assert not waiting.done()
        connection._look()  # at 30 s: nothing for 20 s
        with pytest.raises(httpx.ReadTimeout, match="15 s"):
            await waiting


def _clock(connection: object, now: Callable[[], float]) -> None:
    loop = asyncio.get_running_loop()

    class Loop:
        time = staticmethod(now)
        call_at = staticmethod(lambda when, do: loop.call_later(when, do))

    connection._loop = Loop()  # type: ignore[attr-defined]


@pytest.mark.asyncio
async def test_an_old_connection_is_closed_and_not_used_again() -> None:
    async with _peer([PLAIN], [PLAIN]) as (peer, transport):
        await transport.exchange(ASK, None)
        transport._idle[0].idle_since -= 21
        await transport.exchange(ASK, None)
        await peer.closed.wait()
        assert len(transport._open) == 1
    assert peer.connections == 2


@pytest.mark.asyncio
async def test_a_closed_transport_has_no_connection_and_a_late_one_is_refused() -> None:
    async with _peer([PLAIN]) as (_, transport):
        await transport.exchange(ASK, None)
        await transport.aclose()
        assert not transport._open
        with pytest.raises(httpx.ConnectError, match="closed"):
            await transport.exchange(ASK, None)


@pytest.mark.asyncio
async def test_a_body_and_its_headers_go_out_in_one_piece() -> None:
    async with _peer([PLAIN]) as (peer, transport):
        await transport.exchange(change("POST", "/v1/y", "k 1", body=END), "e")
    sent = b"".join(peer.requests)
    assert b"X-Epoch: e\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\n" in sent
    assert b"Idempotency-Key: k 1\r\n" in sent


@pytest.mark.parametrize("value", ["a\r\nX-Other: 1", "ä", "\x00"])
def test_no_header_can_be_smuggled_in(value: str) -> None:
    with pytest.raises(ValueError, match="printable ASCII"):
        change("DELETE", "/v1/y", value)
