"""Keeps one transport for each event loop of each process, and closes it with its loop.

A socket belongs to the loop and to the process that opened it. After a fork the child opens its own and leaves its
parent's alone.
"""

import asyncio
import gc
import os
import ssl
import sys
import threading
import warnings
import weakref
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec

import httpx

from .exchange import HttpxTransport, Transport
from .forks import keep_in_children

# A connection idle for longer is not used again: below the 5 s after which uvicorn by default closes it, because a
# call sent into a closing connection is lost, and costs a pause before it is sent again.
IDLE_S = 4.0
# Process and loop.
Key = tuple[int, asyncio.AbstractEventLoop]


class Transports:
    """Those of one client. `given`: the caller's own, the one for all loops and processes."""

    def __init__(self, base_url: str, timeout_s: float, given: httpx.AsyncBaseTransport | None) -> None:
        self._base_url, self._timeout_s = base_url, timeout_s
        self._given = None if given is None else HttpxTransport(given, base_url, timeout_s)
        self._given_used_by = set[int]()
        self._tls = Tls() if httpx.URL(base_url).scheme == "https" else None
        self._opened: dict[Key, tuple[Transport, AsyncGenerator[None]]] = {}
        self._closed = False
        keep_in_children(self)

    async def here(self) -> Transport:
        """The one of the running loop. RuntimeError after `close`."""
        self._check_open()
        if self._given is not None:
            self._given_used_by.add(os.getpid())
            return self._given
        opened = self._opened.get((os.getpid(), asyncio.get_running_loop()))
        return await self._open() if opened is None else opened[0]

    @asynccontextmanager
    async def for_a_file(self) -> AsyncGenerator[HttpxTransport]:
        """One for a single call whose body, or whose answer's, is a file: kept connections serve short ones.

        RuntimeError after `close`.
        """
        self._check_open()
        if self._given is not None:
            self._given_used_by.add(os.getpid())
            yield self._given
            return
        tls = None if self._tls is None else await asyncio.to_thread(self._tls.context)
        made = _plain(self._base_url, self._timeout_s, tls)
        try:
            yield made
        finally:
            await made.aclose()

    async def close(self) -> None:
        """Close the running loop's; other loops close theirs. A parent's stay open if its child closes."""
        self._closed = True
        if self._given is not None and os.getpid() in self._given_used_by:
            await self._given.aclose()
        here = self._opened.pop((os.getpid(), asyncio.get_running_loop()), None)
        if here is not None:
            await here[1].aclose()
        await self._drop_dead()
        for key in self._of_this_process():
            self._opened.pop(key, None)  # a generator that nobody holds any more is closed by its loop

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("the client is closed")

    def _of_this_process(self) -> list[Key]:
        return [key for key in list(self._opened) if key[0] == os.getpid()]

    async def _open(self) -> Transport:
        await self._drop_dead()
        made = await self._made()
        self._check_open()
        key = (os.getpid(), asyncio.get_running_loop())
        if key not in self._opened:  # another call of this loop may have been faster
            life = _life(weakref.ref(self), key, made)
            self._opened[key] = made, life
            await anext(life)
        return self._opened[key][0]

    async def _made(self) -> Transport:
        if self._tls is None and f"{__package__}.fast" in sys.modules:
            return self._make()
        # To import a transport and to read certificates takes up to 100 ms: not on the caller's loop.
        return await asyncio.to_thread(self._make)

    def _make(self) -> Transport:
        return fastest_transport(self._base_url, self._timeout_s, None if self._tls is None else self._tls.context())

    def forget(self, key: Key) -> None:
        """What was opened for it is closed."""
        self._opened.pop(key, None)

    async def _drop_dead(self) -> None:
        """Close what a loop left behind that was closed without its `shutdown_asyncgens`; asyncio.run calls that."""
        dead = [key for key in self._of_this_process() if key[1].is_closed()]
        if not dead:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            for key in dead:
                await self._abandon(key)
            gc.collect()  # only the collector closes a socket of a closed loop, and it stands in a cycle

    async def _abandon(self, key: Key) -> None:
        made, _ = self._opened.pop(key, (None, None))
        with suppress(RuntimeError):  # "Event loop is closed"
            if made is not None:
                await made.aclose()


class Tls:
    """The TLS context of one client: made once, at the first call."""

    def __init__(self) -> None:
        # By process, because a lock that another thread held at a fork is held for ever in the child.
        self._locks: dict[int, threading.Lock] = {}
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """Trusts what httpx does (SSL_CERT_FILE, SSL_CERT_DIR, else certifi's bundle), and what the system does."""
        with self._locks.setdefault(os.getpid(), threading.Lock()):
            if self._context is None:
                context = httpx.create_ssl_context()
                context.load_default_certs()
                self._context = context
            return self._context


def fastest_transport(base_url: str, timeout_s: float, tls: ssl.SSLContext | None = None) -> Transport:
    """Our own on httptools where that is installed (five times the calls per second and more), else httpx's.

    Neither limits connections, since a waiting claim holds one, nor heeds proxies: the service is next door. Without
    `tls`, for http://, no certificate and no variable of the environment is read.
    """
    if find_spec("httptools") is not None:
        with suppress(ImportError):  # there, but of another Python
            from .fast import FastTransport

            return FastTransport(httpx.URL(base_url), timeout_s, IDLE_S, tls)
    return _plain(base_url, timeout_s, tls)


def _plain(base_url: str, timeout_s: float, tls: ssl.SSLContext | None) -> HttpxTransport:
    """httpx's."""
    verify = tls or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=IDLE_S)
    plain = httpx.AsyncHTTPTransport(verify=verify, limits=limits, trust_env=False)
    return HttpxTransport(plain, base_url, timeout_s)


async def _life(owner: weakref.ref[Transports], key: Key, made: Transport) -> AsyncGenerator[None]:
    """Begun in a loop, it ends with it: a loop closes its asynchronous generators before it is closed itself."""
    try:
        yield
    finally:
        transports = owner()
        if transports is not None:
            transports.forget(key)
        await made.aclose()
