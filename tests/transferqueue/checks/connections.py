"""Loops, threads, forks and ends: one connection per long-lived loop, all closed; and services that are not there."""

import asyncio
import http.server
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import transfer_queue as tq

from batchmeta.transferqueue import NoService, ServiceFailed

from .planes import asynchronous, info, ours, raised, used, with_units

ROW = {"x": torch.tensor([1, 2, 3])}


def open_transports(client: Any) -> int:
    """Of this process, in whatever loop."""
    return len(client._controller.service.client._connection._transports._of_this_process())


def check_one_connection_per_loop_and_none_after_close(url: str, partition: str) -> None:
    client = ours(url)
    with used(client):
        for n in range(3):
            tq.kv_put(f"k{n}", partition, dict(ROW), None)
        assert open_transports(client) == 1
        for n in range(3):
            asyncio.run(tq.async_kv_put(f"run{n}", partition, dict(ROW), {"n": n}))
        assert open_transports(client) == 1  # those of loops that ended are closed
        assert len(tq.kv_list(partition)[partition]) == 6
    assert open_transports(client) == 0
    assert "closed" in str(raised(RuntimeError, asyncio.run, client.async_kv_list(partition)))


async def check_a_client_without_a_loop_of_its_own(url: str, partition: str) -> None:
    client = asynchronous(url)
    await client.async_kv_retrieve_meta("a", partition, create=True)
    assert await client.async_kv_list(partition) == {partition: {"a": {}}}
    client.close()
    await client._controller.ending
    assert open_transports(client) == 0


def check_threads_share_a_client(url: str, partition: str) -> None:
    with used(ours(url)):
        threads = [threading.Thread(target=tq.kv_put, args=(f"k{n}", partition, dict(ROW), {"n": n})) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(tq.kv_list(partition)[partition]) == 8


def check_a_forked_child_makes_its_own_client(url: str, partition: str) -> None:
    """As the streaming loader does: the config is its parent's, the client its own."""
    with used(ours(url)) as client:
        tq.kv_put("a", partition, dict(ROW), None)
        inherited = client._controller
        child = os.fork()
        if child == 0:
            try:
                found = with_units(inherited).kv_list(partition)
                os._exit(0 if list(found[partition]) == ["a"] else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        tq.kv_put("b", partition, dict(ROW), None)
        assert list(tq.kv_list(partition)[partition]) == ["a", "b"]


def check_nobody_at_the_url() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        error = raised(NoService, with_units, info(f"http://127.0.0.1:{port}", patience_s=0.1))
    assert f"127.0.0.1:{port}" in str(error)
    assert "BATCHMETA_URL" in str(error)


def check_somebody_else_at_the_url() -> None:
    with another_server() as url:
        assert "no batchmeta service" in str(raised(NoService, with_units, info(url, patience_s=0.1)))


def check_a_service_that_goes_away(url: str, partition: str) -> None:
    with forwarded(url) as (proxied, stop):
        client = ours(proxied, timeout_s=1.0, patience_s=0.5)
        with used(client):
            tq.kv_put("a", partition, dict(ROW), None)
            stop()
            error = raised(ServiceFailed, tq.kv_put, "b", partition, dict(ROW), None)
            assert proxied in str(error)
            assert isinstance(error.__cause__, ConnectionError)


@contextmanager
def another_server() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


@contextmanager
def forwarded(url: str) -> Iterator[tuple[str, Any]]:
    """A way to the service that can be cut: bytes go through until `stop`."""
    loop, port = asyncio.new_event_loop(), int(url.rpartition(":")[2])
    writers: list[asyncio.StreamWriter] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port)
        writers.extend((writer, there_writer))
        await asyncio.gather(pump(reader, there_writer), pump(there_reader, writer), return_exceptions=True)

    threading.Thread(target=loop.run_forever, daemon=True).start()
    server = asyncio.run_coroutine_threadsafe(asyncio.start_server(meet, "127.0.0.1", 0), loop).result()

    async def cut() -> None:
        server.close()
        for writer in writers:
            writer.transport.abort()

    yield (
        f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}",
        lambda: asyncio.run_coroutine_threadsafe(cut(), loop).result(),
    )
    loop.call_soon_threadsafe(loop.stop)
