"""The way to the service over real loopback sockets, with both transports."""

import asyncio
import socket
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, unquote

import pytest

from batchmeta import AsyncClient, Client, ConnectionLost, Retries, UnreadableReply
from batchmeta.exchange import HttpxTransport
from batchmeta.fast import FastTransport
from batchmeta.transports import fastest_transport
from tests.client.service import loopback

NEVER_AGAIN = Retries(most=0)


@pytest.fixture(params=["fast", "httpx"])
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the extra `fast`, and without."""
    if request.param == "httpx":
        monkeypatch.setattr("batchmeta.transports.find_spec", lambda name: None)
    return str(request.param)


TRANSPORT = pytest.mark.usefixtures("transport")


@asynccontextmanager
async def _answering(answer: bytes | None, after: bytes = b"\r\n\r\n") -> AsyncIterator[str]:
    """A port that reads up to these bytes, writes these bytes and closes; None: it reads and stays silent."""
    left = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await (reader.readuntil(after) if after else reader.read(1))
        if answer is None:
            await left.wait()
        else:
            writer.write(answer)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        left.set()
        server.close()
        await server.wait_closed()


@TRANSPORT
@pytest.mark.asyncio
async def test_one_connection_is_kept_and_names_arrive_as_they_are() -> None:
    names = ["train@step_12", "a b", "ü%2F&?#+;=", "a/b"]
    with loopback() as server:
        async with AsyncClient(server.url) as client:
            paths = [(await client.partition(name)).partition_id for name in names]
    assert [unquote(path.removeprefix("/v1/partitions/")) for path in paths] == names
    assert all(path.count("/") == 3 and "?" not in path for path in paths)
    assert len(server.ports) == len(names)
    assert len(set(server.ports)) == 1


@TRANSPORT
@pytest.mark.asyncio
async def test_a_prefix_arrives_as_it_is() -> None:
    with loopback() as server:
        async with AsyncClient(server.url) as client:
            with pytest.raises(UnreadableReply):
                await client.partitions("a+b c&d=é%20/")
    assert parse_qs(server.paths[0].partition("?")[2]) == {"prefix": ["a+b c&d=é%20/"]}


@TRANSPORT
@pytest.mark.asyncio
async def test_many_calls_at_once_need_no_turns() -> None:
    with loopback() as server:
        async with AsyncClient(server.url) as client:
            found = await asyncio.gather(*(client.partition(f"p{i}") for i in range(50)))
    assert [each.partition_id for each in found] == [f"/v1/partitions/p{i}" for i in range(50)]


@TRANSPORT
@pytest.mark.asyncio
@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{", b"this is no HTTP\r\n\r\n"],
    ids=["closed", "cut", "garbage"],
)
async def test_an_answer_that_breaks_off_is_a_lost_connection(answer: bytes) -> None:
    async with _answering(answer) as url, AsyncClient(url, retries=NEVER_AGAIN) as client:
        with pytest.raises(ConnectionLost, match=r"POST /v1/partitions/p/tasks/t/claims: "):
            await client.claim("p", "t", ["x"], 1)


@TRANSPORT
@pytest.mark.asyncio
async def test_silence_is_a_lost_connection_after_the_timeout() -> None:
    async with _answering(None) as url:
        client = AsyncClient(url, timeout=0.05, retries=NEVER_AGAIN)
        with pytest.raises(ConnectionLost, match="Timeout"):
            await client.partition("p")
        await client.aclose()


@pytest.fixture
def nowhere() -> Iterator[str]:
    """The URL of a port where nobody listens, and nobody can meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@TRANSPORT
@pytest.mark.asyncio
async def test_nobody_there_is_one_short_error_that_says_where_and_what_to_start(
    nowhere: str,
) -> None:
    async with AsyncClient(nowhere, retries=NEVER_AGAIN) as client:
        with pytest.raises(ConnectionLost) as raised:
            await client.insert("p", count=1)
    error = raised.value
    assert str(error) == (
        f"POST /v1/partitions/p/samples: nothing answers at {nowhere} (connection refused): "
        "start the service with scripts/serve, or give base_url"
    )
    assert error.__cause__ is error.__context__ is None
    assert len("".join(traceback.format_exception(error)).splitlines()) <= 20


@TRANSPORT
def test_the_blocking_client_says_it_in_fewer_lines(nowhere: str) -> None:
    client = Client(nowhere, retries=NEVER_AGAIN)
    with pytest.raises(ConnectionLost, match="nothing answers at") as raised:
        client.insert("p", count=1)
    client.close()
    assert len("".join(traceback.format_exception(raised.value)).splitlines()) <= 15


@TRANSPORT
@pytest.mark.asyncio
async def test_a_name_that_nobody_knows_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*asked: object, **more: object) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    async with AsyncClient("http://batchmeta.invalid", retries=NEVER_AGAIN) as client:
        with pytest.raises(ConnectionLost, match=r"at http://batchmeta.invalid \(Name or service not known\): start"):
            await client.partition("p")


@pytest.mark.asyncio
@pytest.mark.parametrize("fast", [True, False])
async def test_a_server_without_tls_is_not_called_absent(fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not fast:
        monkeypatch.setattr("batchmeta.transports.find_spec", lambda name: None)
    async with _answering(b"this is no TLS\r\n\r\n", after=b"") as url:
        client = AsyncClient(url.replace("http", "https"), retries=NEVER_AGAIN)
        with pytest.raises(ConnectionLost, match=r": no TLS with https://127.0.0.1:\d+ \(\[SSL"):
            await client.partition("p")
        await client.aclose()


@pytest.mark.asyncio
async def test_a_call_after_closing_is_refused() -> None:
    client = AsyncClient()
    await client.aclose()
    with pytest.raises(RuntimeError, match="closed"):
        await client.partition("p")


@pytest.mark.asyncio
async def test_the_fast_transport_is_taken_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(fastest_transport("http://h", 1.0), FastTransport)
    monkeypatch.setattr("batchmeta.transports.find_spec", lambda name: None)
    assert isinstance(fastest_transport("http://h", 1.0), HttpxTransport)


def test_importing_it_imports_nothing_heavy() -> None:
    heavy = {"torch", "numpy", "pydantic", "httptools", "aiohttp", "fastapi"}
    text = f"import batchmeta, sys; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
