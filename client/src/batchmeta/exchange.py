"""The interface of a transport: one request for one answer; and the transport that uses httpx.

Errors of all transports are httpx's: `httpx.RequestError` means that no answer came.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar

import httpx

from .calls import Call

HEADERS = {"Accept": "application/json, application/problem+json", "User-Agent": "batchmeta"}
JSON_BODY = "application/json"
K = TypeVar("K")
V = TypeVar("V")
# Requests whose unchanging part is kept from one call to the next: a worker makes few kinds, of few partitions.
KEPT = 256


class Answer(Protocol):
    """A whole answer, as `httpx.Response` has it."""

    @property
    def status_code(self) -> int: ...
    @property
    def headers(self) -> httpx.Headers: ...
    @property
    def content(self) -> bytes: ...
    @property
    def text(self) -> str: ...
    @property
    def reason_phrase(self) -> str: ...


class Transport(Protocol):
    """Keeps connections open between calls."""

    async def exchange(self, call: Call, epoch: str | None) -> Answer:
        """The answer, whatever its status. `epoch`: the one that the call is for. Raises httpx.RequestError."""

    async def aclose(self) -> None:
        """Close its connections; calls on their way are httpx.RequestError."""


def target(call: Call) -> str:
    """Path and query."""
    return f"{call.path}?{call.query}" if call.query else call.path


class HttpxTransport:
    """Over a transport of httpx."""

    def __init__(self, given: httpx.AsyncBaseTransport, base_url: str, timeout_s: float) -> None:
        self.given, self._base_url, self._timeout_s = given, base_url, timeout_s
        self._urls: dict[str, httpx.URL] = {}

    async def exchange(self, call: Call, epoch: str | None) -> httpx.Response:
        async with self.streamed(call, epoch) as answer:
            await answer.aread()
        return answer

    @asynccontextmanager
    async def streamed(
        self, call: Call, epoch: str | None, content: AsyncIterator[bytes] | None = None
    ) -> AsyncIterator[httpx.Response]:
        """The answer once its headers came, its body to be read within; `content`: the call's own body, in pieces."""
        answer = await self.given.handle_async_request(self._request(call, epoch, content))
        try:
            yield answer
        finally:
            await answer.aclose()

    async def aclose(self) -> None:
        await self.given.aclose()

    def _request(self, call: Call, epoch: str | None, content: AsyncIterator[bytes] | None = None) -> httpx.Request:
        headers = {**HEADERS, **call.headers}
        if call.body is not None:
            headers["Content-Type"] = JSON_BODY
        if epoch is not None:
            headers["X-Epoch"] = epoch
        within = self._timeout_s
        timeout = {"connect": within, "read": within + call.wait_s, "write": within, "pool": within}
        url = self._url(target(call))
        return httpx.Request(
            call.method, url, headers=headers, content=content or call.body, extensions={"timeout": timeout}
        )

    def _url(self, wanted: str) -> httpx.URL:
        url = self._urls.get(wanted)
        if url is None:
            url = httpx.URL(self._base_url + wanted)
            keep(self._urls, wanted, url)
        return url


def keep(kept: dict[K, V], key: K, value: V) -> None:
    """Remember it, among not too many."""
    if len(kept) >= KEPT:
        kept.clear()
    kept[key] = value
