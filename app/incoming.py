"""One request as a route sees it: what came, and how it is handed to the engine and answered.

A body is measured as it streams. A call that waits is withdrawn when its client leaves. A call with a key is handed on
with it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope

from core.engine import Engine
from core.errors import Invalid, TooManyWaiting
from core.events import Kept
from core.operations.parked import Outcome
from core.runtime.calls import Preconditions
from core.runtime.executor import Executor
from core.slices import Sliced
from core.state.kept_replies import Keyed

from .edge import Edge
from .errors import BodyTooLarge
from .file_reply import FileReply
from .keys import keyed
from .reply import Reply

HALF_CLOSED = "half_closed"  # in the state of a request whose client closed its sending side
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def names(request_id: str, executor: Executor) -> list[tuple[bytes, bytes]]:
    """X-Request-ID and X-Epoch."""
    return [(b"x-request-id", request_id.encode()), (b"x-epoch", b"%d" % executor.reading.epoch)]


class Incoming:
    """A request on its way to the engine. `key`: the Idempotency-Key of a call that changes something.

    `epoch`: the only one in which it is to be answered.
    """

    __slots__ = ("_keyed", "_receive", "edge", "epoch", "key", "scope")

    def __init__(self, scope: Scope, receive: Receive, edge: Edge) -> None:
        self.scope, self._receive, self.edge = scope, receive, edge
        self.key: str | None = None
        self.epoch: int | None = None
        self._keyed: Keyed | None = None

    @property
    def method(self) -> str:
        """GET, POST, …"""
        return str(self.scope["method"])

    @property
    def request_id(self) -> str:
        """The caller's or a new one, from the guard."""
        return str(self.scope["state"]["request_id"])

    def names(self) -> list[tuple[bytes, bytes]]:
        """The headers that every reply carries."""
        return names(self.request_id, self.edge.executor)

    @property
    def path_params(self) -> dict[str, str]:
        """Names in the path, decoded."""
        return self.scope["path_params"]  # type: ignore[no-any-return]

    @property
    def partition_id(self) -> str:
        """From the path, its form already checked."""
        return self.path_params["partition_id"]

    @property
    def task(self) -> str:
        """From the path, its form already checked."""
        return self.path_params["task"]

    @property
    def claim_id(self) -> str:
        """From the path, its form already checked."""
        return self.path_params["claim_id"]

    @property
    def query(self) -> str:
        """As it stands in the address."""
        return str(self.scope["query_string"].decode("latin-1"))

    @property
    def query_params(self) -> QueryParams:
        """Decoded."""
        return QueryParams(self.scope["query_string"])

    def header(self, name: bytes) -> str | None:
        """The header of that name, given in lower case; the lines of a list are one."""
        value: bytes | None = self.scope["state"]["headers"].get(name)
        return None if value is None else value.decode("latin-1")

    @property
    def content_type(self) -> str:
        """Without its parameters, lower case."""
        return (self.header(b"content-type") or "").partition(";")[0].strip().lower()

    async def body(self) -> bytes:
        """The whole body. Refused while it streams as soon as it is over the limit. Raises ClientDisconnect."""
        self.check_length()
        parts: list[bytes] = []
        size = 0
        async for part in self.parts():
            size += len(part)
            self.check_size(size)
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def parts(self) -> AsyncIterator[bytes]:
        """The body as it comes in, at least one part; no more is read than is asked for. Raises ClientDisconnect."""
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            more = message.get("more_body", False)
            yield message.get("body", b"")

    @property
    def declared_bytes(self) -> int | None:
        """The length of the body, where it is said beforehand."""
        declared = self.header(b"content-length")
        return int(declared) if declared is not None and declared.isdigit() else None

    async def gone(self) -> None:
        """Ends when the client does, once its body is read."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def check_length(self) -> None:
        """Raises BodyTooLarge where the length that was declared is over the limit."""
        declared = self.declared_bytes
        if declared is not None:
            self.check_size(declared)

    def check_size(self, size: int) -> None:
        """Raises BodyTooLarge where so many bytes are over the limit."""
        most = self.edge.settings.max_body_bytes
        if size > most:
            raise BodyTooLarge(f"a body may have {most} bytes (limits.max_body_bytes): send fewer rows")

    async def send(self, reply: Reply) -> None:
        """Answer over ASGI, past the layers around the router: they have nothing to add."""
        send = self.scope["state"]["send"]
        headers = self.names()
        reply.add_headers(headers, self.method)
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        if isinstance(reply, FileReply):
            await reply.send_file(send, self.gone, self.method)
        else:
            await send({"type": "http.response.body", "body": reply.body})

    def identify(self, body: bytes) -> None:
        """The body is whole: from here on a key stands for this request and no other."""
        if self.key is not None:
            self._keyed = keyed(self.key, self.method, self.scope["path"], self.scope["query_string"], body)

    async def kept(self) -> Reply | None:
        """The reply to this key, where the call was made before; for calls whose work is not the engine's.

        Raises EpochMismatch too.
        """
        if self._keyed is None and self.epoch is None:
            return None
        found = await self._submit(lambda _: None, lambda _: Reply(204, b"", is_kept=False))
        return found if found.replayed else None

    async def keeping(self, reply: Reply) -> Reply:
        """The reply, kept for this key."""
        return reply if self._keyed is None else await self._submit(lambda _: None, lambda _: reply)

    def engine(
        self,
        operation: Callable[Concatenate[Engine, P], R | Sliced[R]],
        render: Callable[[R], Reply | Sliced[Reply]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> "asyncio.Future[Reply]":
        """Run an operation in the engine's thread; its reply is rendered there. To be awaited."""
        return self._submit(operation, render, *args, **kwargs)

    def _submit(
        self,
        operation: Callable[Concatenate[Engine, P], Outcome[R]],
        render: Callable[[R], Reply | Sliced[Reply]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> "asyncio.Future[Reply]":
        if self._keyed is None and self.epoch is None:
            return self.edge.executor.submit(operation, render, *args, **kwargs)
        preconditions = Preconditions(self.epoch, self._keyed, _replayed)
        return self.edge.executor.submit_on(preconditions, operation, render, *args, **kwargs)

    async def waiting_engine(
        self,
        operation: Callable[Concatenate[Engine, P], Outcome[R]],
        render: Callable[[R], Reply | Sliced[Reply]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Reply:
        """As `engine`, for a call that may park: it is withdrawn when its client leaves. Raises TooManyWaiting."""
        client = self.scope["client"][0] if self.scope.get("client") else ""
        waiting = self.edge.waiting
        if waiting.get(client, 0) >= self.edge.settings.max_waiting_per_client:
            raise TooManyWaiting
        waiting[client] = waiting.get(client, 0) + 1
        try:
            return await self._unless_gone(self._submit(operation, render, *args, **kwargs))
        finally:
            waiting[client] -= 1
            if not waiting[client]:
                del waiting[client]

    async def _unless_gone(self, future: asyncio.Future[Reply]) -> Reply:
        gone: asyncio.Future[None] = asyncio.ensure_future(self._gone())
        both: list[asyncio.Future[Any]] = [future, gone]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if self._is_half_closed and not future.done():
                self.edge.executor.withdraw(future, Invalid.at("connection", _MAY_BE_GONE))
                await asyncio.wait([future])
        finally:
            gone.cancel()
            if not future.done():
                future.cancel()
        if future.cancelled():
            raise ClientDisconnect
        return future.result()

    async def _gone(self) -> None:
        while not self._is_half_closed and (await self._receive())["type"] != "http.disconnect":
            pass

    @property
    def _is_half_closed(self) -> bool:
        return HALF_CLOSED in self.scope["state"]


_MAY_BE_GONE = (
    "its sending side was closed while the call waited, as by a client that left: nothing was taken or changed. Keep "
    "it open until the answer, or do not wait"
)


def _replayed(kept: Kept) -> Reply:
    return Reply(kept.status, kept.body, kept.etag, replayed=True)
