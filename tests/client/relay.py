"""A relay between a client and a real server that does to requests what networks and gateways do, by a seeded plan.

It runs in a thread of its own. What it does to the n-th request depends on the seed and n alone; it waits for no clock.
"""

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

STATUS = (500, 501, 502, 503, 504)
# Before: the server never hears of the call. After: it made it, and its answer is lost.
FAULTS = ("cut before", "cut after", "cut within", "status before", "status after", "delay", "close idle")
SHARE = 0.4  # of the requests, which something is done to
TURNS = 200  # of the loop: how long an answer is held back


class Relay:
    """`seen` counts what was done."""

    def __init__(self, target: str, seed: int) -> None:
        parts = urlsplit(target)
        self._target = (parts.hostname, parts.port)
        self._chance = random.Random(seed)
        self._writers: set[asyncio.StreamWriter] = set()
        self.seen: Counter[str] = Counter()
        self.url = ""

    def next_fault(self) -> str:
        """What is done to the next request."""
        fault = self._chance.choice(FAULTS) if self._chance.random() < SHARE else "none"
        self.seen[fault] += 1
        return fault

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client, request by request."""
        self._writers.add(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while await self._answered(await _message(reader), writer):
                await writer.drain()
        self._writers.discard(writer)
        writer.close()

    async def _answered(self, request: bytes, writer: asyncio.StreamWriter) -> bool:
        """Does the connection stay open?"""
        fault = self.next_fault()
        if fault == "status before":
            writer.write(self._gateway())
        if fault in ("cut before", "status before"):
            return fault == "status before"
        answer = await self._from_server(request)
        for _ in range(TURNS if fault == "delay" else 0):
            await asyncio.sleep(0)
        said = {"cut after": b"", "cut within": answer[: len(answer) // 2], "status after": self._gateway()}
        writer.write(said.get(fault, answer))
        return not fault.startswith(("cut", "close"))

    async def _from_server(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(*self._target)
        try:
            writer.write(request)
            return await _message(reader)
        finally:
            writer.close()

    def _gateway(self) -> bytes:
        status, body = self._chance.choice(STATUS), b"<html>gateway</html>"
        head = f"HTTP/1.1 {status} Not Now\r\nServer: relay\r\nContent-Type: text/html\r\nContent-Length: {len(body)}"
        return head.encode() + b"\r\n\r\n" + body

    async def end(self) -> None:
        """Close what clients left open."""
        for writer in list(self._writers):
            writer.close()


async def _message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = next((int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:")), 0)
    return head + await reader.readexactly(length)


@contextmanager
def relay(target: str, seed: int) -> Iterator[Relay]:
    """It listens at `url`; it ends with the block."""
    found, up, over = Relay(target, seed), threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        server = await asyncio.start_server(found.talk, "127.0.0.1", 0)
        found.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        up.set()
        await over.wait()
        server.close()
        await found.end()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    up.wait()
    try:
        yield found
    finally:
        loops[0].call_soon_threadsafe(over.set)
        thread.join()
