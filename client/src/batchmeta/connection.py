"""The only place that does I/O: sends a `Call`, gives back the answer or raises what became of it.

Sockets belong to the process that opened them. After a fork the child opens its own and leaves its parent's alone.
"""

import os
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count

import httpx
import msgspec

from .calls import Call
from .errors import BY_CODE, ConnectionLost, Problem
from .forks import keep_in_children
from .retries import Retries
from .wire import replies

# A connection idle for longer is not used again: below the 5 s after which uvicorn by default closes it, because a
# call sent into a closing connection is lost, and costs a pause before it is sent again.
IDLE_S = 4.0
_HEADERS = {"Accept": "application/json, application/problem+json", "User-Agent": "batchmeta"}
_problem = msgspec.json.Decoder(replies.Problem)


@dataclass(slots=True)
class Connection:
    """The way to one service. `timeout_s`: seconds without progress after which a call is given up.

    `pin_epoch`: from the first answer on, calls are for that epoch alone.
    """

    base_url: str
    timeout_s: float
    retries: Retries
    transport: httpx.AsyncBaseTransport | None = None
    pin_epoch: bool = False
    _epoch: str | None = None
    _opened: dict[int, httpx.AsyncBaseTransport] = field(default_factory=dict)
    _closed: bool = False

    def __post_init__(self) -> None:
        url = httpx.URL(self.base_url)
        if url.scheme not in ("http", "https") or not url.host:
            raise ValueError(f"base_url must be like http://127.0.0.1:8700, not {self.base_url!r}")
        self.base_url = self.base_url.rstrip("/")

    async def send(self, call: Call, retries: Retries | None = None) -> httpx.Response:
        """A 2xx answer, its body read. Problem or ConnectionLost otherwise, after the retries that the call allows.

        `retries`: other ones than the connection's own.
        """
        retries = retries or self.retries
        began = retries.clock()
        for sent in count(1):
            try:
                return await self._send_once(call)
            except (ConnectionLost, Problem) as error:
                elapsed = retries.clock() - began - call.wait_s
                pause = retries.pause(error, sent, elapsed) if call.resend else None
                if pause is None:
                    raise
            await retries.sleep(pause)
        raise AssertionError("count() does not end")

    def new_epoch(self) -> None:
        """The next answer's epoch is the one."""
        self._epoch = None

    async def close(self) -> None:
        """Close what this process opened. A call after it is a RuntimeError."""
        self._closed = True
        transport = self._opened.pop(os.getpid(), None)
        if transport is not None:
            await transport.aclose()

    async def _send_once(self, call: Call) -> httpx.Response:
        try:
            answer = await self._transport().handle_async_request(self._request(call))
            try:
                await answer.aread()
            finally:
                await answer.aclose()
        except httpx.TransportError as error:
            raise ConnectionLost(f"{call.method} {call.path}: {type(error).__name__} {error}".rstrip()) from error
        if answer.status_code >= 300:
            raise problem_of(answer)
        if self.pin_epoch and self._epoch is None and call.is_pinned:
            self._epoch = answer.headers.get("X-Epoch")
        return answer

    def _request(self, call: Call) -> httpx.Request:
        headers = {**_HEADERS, **call.headers}
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        if self._epoch is not None and call.is_pinned:
            headers["X-Epoch"] = self._epoch
        url = self.base_url + call.path + (f"?{call.query}" if call.query else "")
        timeout = httpx.Timeout(self.timeout_s, read=self.timeout_s + call.wait_s)
        return httpx.Request(
            call.method, url, headers=headers, content=call.body, extensions={"timeout": timeout.as_dict()}
        )

    def _transport(self) -> httpx.AsyncBaseTransport:
        if self._closed:
            raise RuntimeError("the client is closed")
        pid = os.getpid()
        if pid not in self._opened:
            self._opened[pid] = self.transport or fastest_transport()
            keep_in_children(self._opened[pid])
        return self._opened[pid]


@dataclass(frozen=True, slots=True)
class Patient:
    """The same way for those who have time: through a restart of the service, however many sendings that takes."""

    connection: Connection

    async def send(self, call: Call) -> httpx.Response:
        """As Connection.send."""
        return await self.connection.send(call, self.connection.retries.patient())

    def new_epoch(self) -> None:
        """As Connection.new_epoch."""
        self.connection.new_epoch()


def fastest_transport() -> httpx.AsyncBaseTransport:
    """aiohttp's where httpx-aiohttp is installed (four times the calls per second here), else httpx's own.

    Neither limits connections, since a waiting claim holds one, nor heeds proxies: the service is next door.
    """
    if find_spec("httpx_aiohttp") is not None:
        from .fast import aiohttp_transport

        return aiohttp_transport(IDLE_S)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=IDLE_S)
    return httpx.AsyncHTTPTransport(limits=limits, trust_env=False)


def problem_of(answer: httpx.Response) -> Problem:
    """The exception for an answer that is no success; a code we do not know, or no problem+json, gives the base."""
    try:
        reply = _problem.decode(answer.content)
    except msgspec.DecodeError:
        reply = _no_problem(answer)
    asked = answer.headers.get("Retry-After", "")
    return BY_CODE.get(reply.code, Problem)(reply, float(asked) if asked.isdigit() else None)


def _no_problem(answer: httpx.Response) -> replies.Problem:
    return replies.Problem(
        type="about:blank",
        title=answer.reason_phrase,
        status=answer.status_code,
        detail=f"not an answer of batchmeta: {answer.text[:200]!r}",
        code=Problem.code,
        retryable=answer.status_code in (429, 503),
        request_id=answer.headers.get("X-Request-ID", ""),
    )
