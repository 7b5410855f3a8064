"""The transport of the `fast` extra: connections of http1.py, kept open. Imported only where httptools is installed."""

import asyncio
import socket
import ssl
from collections import deque

import httpx

from .calls import Call
from .exchange import HEADERS, JSON_BODY, keep, target
from .http1 import HttpConnection, ReadAnswer

# Bytes taken from the system at once, into memory that stays: asyncio's own way allocates as much for each piece, which
# for a reply of 217 KB is half of what it costs to read.
BUFFER = 262_144


class FastTransport:
    """To one service, of one loop. No limit on connections; one that was idle for `idle_s` seconds is not used again.

    `timeout_s`: to connect, and without progress. `tls`: None for http://.
    """

    def __init__(self, base_url: httpx.URL, timeout_s: float, idle_s: float, tls: ssl.SSLContext | None) -> None:
        self._url, self._timeout_s, self._idle_s, self._tls = base_url, timeout_s, idle_s, tls
        self._prefix = base_url.raw_path.decode("ascii").rstrip("/")
        common = {"Host": base_url.netloc.decode("ascii"), **HEADERS}
        self._common = "".join(f"{name}: {value}\r\n" for name, value in common.items())
        self._heads: dict[tuple[str, str], bytes] = {}
        self._buffer = bytearray(BUFFER)
        self._open, self._idle = set[HttpConnection](), deque[HttpConnection]()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    async def exchange(self, call: Call, epoch: str | None) -> ReadAnswer:
        """As Transport.exchange."""
        request = self._request(call, epoch)
        connection = self._kept() or await self._connect()
        answer = await connection.exchange(request, self._timeout_s + call.wait_s)
        if connection.is_open:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
        return answer

    async def aclose(self) -> None:
        """As Transport.aclose."""
        self._is_closed = True
        self._idle.clear()
        for connection in list(self._open):
            connection.abort()
        # In one of its next turns the loop says that they have ended; one that was closed says nothing any more.
        while self._open and self._loop is asyncio.get_running_loop():  # noqa: ASYNC110 - an event costs every call
            await asyncio.sleep(0)

    def _request(self, call: Call, epoch: str | None) -> bytes:
        head = self._heads.get((call.method, wanted := target(call)))
        if head is None:
            head = f"{call.method} {self._prefix}{wanted} HTTP/1.1\r\n{self._common}".encode("ascii")
            keep(self._heads, (call.method, wanted), head)
        more = "".join(f"{name}: {value}\r\n" for name, value in call.headers.items())
        if epoch is not None:
            more += f"X-Epoch: {epoch}\r\n"
        if call.body is None:
            # As RFC 9110 wants it: a method that may have a body says that it has none.
            return head + (more if call.method == "GET" else f"{more}Content-Length: 0\r\n").encode("ascii") + b"\r\n"
        more += f"Content-Type: {JSON_BODY}\r\nContent-Length: {len(call.body)}\r\n\r\n"
        return b"".join((head, more.encode("ascii"), call.body))

    def _kept(self) -> HttpConnection | None:
        """The one used last, so that those too many grow old; these are closed."""
        oldest = asyncio.get_running_loop().time() - self._idle_s
        while self._idle and self._idle[0].idle_since < oldest:
            self._idle.popleft().abort()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection
        return None

    async def _connect(self) -> HttpConnection:
        try:
            async with asyncio.timeout(self._timeout_s):
                connection = await self._connected()
        except TimeoutError as error:
            raise httpx.ConnectTimeout(f"no connection within {self._timeout_s:g} s") from error
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error
        self._open.add(connection)
        if self._is_closed:
            connection.abort()
            raise httpx.ConnectError("the client was closed meanwhile")
        return connection

    async def _connected(self) -> HttpConnection:
        loop = self._loop = asyncio.get_running_loop()
        host, port = self._url.raw_host.decode("ascii"), self._url.port or (80 if self._tls is None else 443)
        found = await _socket(loop, host, port)
        try:
            _, connection = await loop.create_connection(
                lambda: HttpConnection(self._open.discard, self._buffer),
                sock=found,
                ssl=self._tls,
                server_hostname=None if self._tls is None else host,
            )
        except BaseException:
            found.close()
            raise
        return connection


async def _socket(loop: asyncio.AbstractEventLoop, host: str, port: int) -> socket.socket:
    """Connected to the first address of the host that answers. OSError: what the last one said."""
    failed: OSError = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        found = socket.socket(family, kind, protocol)
        found.setblocking(False)
        try:
            await loop.sock_connect(found, address)
        except OSError as error:
            found.close()
            failed = error
        except BaseException:
            found.close()
            raise
        else:
            return found
    raise failed
