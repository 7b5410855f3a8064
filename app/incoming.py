"""One request as a route sees it, and its reply. Bodies are measured as they stream; waiting calls watch for leave."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from core.engine import Engine
from core.errors import TooManyWaiting
from core.executor import Executor
from core.parked import Parked

from .errors import EdgeRefused
from .settings import Settings

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reply:
    """Status and body bytes, made in the engine's thread; a GET's with an `etag` may be kept and revalidated."""

    status: int
    body: bytes
    etag: str | None = None

    def to_response(self, method: str) -> Response:
        """As starlette sends it."""
        headers = {"Cache-Control": "no-store"}
        if self.etag is not None:
            headers["ETag"] = self.etag
            if method == "GET":
                headers |= {"Cache-Control": "no-cache", "Vary": "Accept"}
        if self.status == 304:
            return Response(status_code=304, headers=headers)
        return Response(self.body, self.status, headers, "application/json")


@dataclass(slots=True)
class Edge:
    """What all routes share: the executor, the settings, this boot's id, and who is waiting."""

    executor: Executor
    settings: Settings
    device: str
    durability: Literal["memory", "wal", "replicated"]
    boot: str
    started_at: float
    waiting: dict[str, int] = field(default_factory=dict)


class Incoming:
    """A request on its way to the engine."""

    __slots__ = ("edge", "request")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.edge: Edge = request.app.state.edge

    @property
    def partition_id(self) -> str:
        """From the path, its form already checked."""
        return str(self.request.path_params["partition_id"])

    @property
    def task(self) -> str:
        """From the path, its form already checked."""
        return str(self.request.path_params["task"])

    @property
    def content_type(self) -> str:
        """Without its parameters, lower case."""
        return self.request.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def body(self) -> bytes:
        """The whole body. Refused while it streams as soon as it is over the limit."""
        most = self.edge.settings.max_body_bytes
        declared = self.request.headers.get("content-length", "0")
        if declared.isdigit() and int(declared) > most:
            raise self._too_large(most)
        parts: list[bytes] = []
        size = 0
        async for part in self.request.stream():
            size += len(part)
            if size > most:
                raise self._too_large(most)
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _too_large(self, most: int) -> EdgeRefused:
        return EdgeRefused("body-too-large", f"a body may have {most} bytes (limits.max_body_bytes): send fewer rows")

    async def engine(
        self, operation: Callable[Concatenate[Engine, P], R], render: Callable[[R], Reply],
        *args: P.args, **kwargs: P.kwargs,
    ) -> Reply:  # fmt: skip
        """Run an operation in the engine's thread; its reply is rendered there."""
        return await self.edge.executor.call(operation, render, *args, **kwargs)

    async def waiting_engine(
        self, operation: Callable[Concatenate[Engine, P], R | Parked[R]], render: Callable[[R], Reply],
        *args: P.args, **kwargs: P.kwargs,
    ) -> Reply:  # fmt: skip
        """As `engine`, for a call that may park: it is withdrawn when its client leaves. Raises TooManyWaiting."""
        client = self.request.client.host if self.request.client else ""
        waiting = self.edge.waiting
        if waiting.get(client, 0) >= self.edge.settings.max_waiting_per_client:
            raise TooManyWaiting
        waiting[client] = waiting.get(client, 0) + 1
        try:
            return await self._unless_gone(self.edge.executor.submit(operation, render, *args, **kwargs))
        finally:
            waiting[client] -= 1
            if not waiting[client]:
                del waiting[client]

    async def _unless_gone(self, future: asyncio.Future[Reply]) -> Reply:
        gone: asyncio.Future[None] = asyncio.ensure_future(self._gone())
        both: list[asyncio.Future[Any]] = [future, gone]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            if not future.done():
                future.cancel()
        if future.cancelled():
            raise ClientDisconnect
        return future.result()

    async def _gone(self) -> None:
        while (await self.request.receive())["type"] != "http.disconnect":
            pass
