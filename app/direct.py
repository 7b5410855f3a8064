"""Answers requests to operations without ASGI: no task unless the call waits, and one write for the reply.

The guard's and the endpoint's checks are made as soon as the headers are whole, the call when its body is. What is
answered without the engine is answered in the loop's next turn, so that whatever came behind it is read first.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from core.errors import Refused

from .contract import Endpoint
from .edge import Edge
from .errors import bug, refused
from .guard import Guard
from .incoming import Incoming
from .reply import Headers, Reply
from .table import Found

_log = logging.getLogger("uvicorn.error")
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_CLOSE = (b"connection", b"close")
LARGE = 2**20  # bytes of a body from which on it is written on its own: to copy it would hold the interpreter
Tasks = set["asyncio.Task[Any]"]


class Direct(RequestResponseCycle):
    """One request. The connection that it came on calls `begin` once all before it are answered, `take` and `end` as
    its body comes in.
    """

    _call: Incoming
    _endpoint: Endpoint
    _guard: Guard
    _tasks: Tasks
    _has_begun = False
    _is_decided = False  # refused, or on its way: what more comes of its body is dropped

    def aim(self, guard: Guard, edge: Edge, found: Found, tasks: Tasks) -> None:
        """It is for this operation, and these are the names in its path; `tasks` are those the server waits for."""
        scope: Any = self.scope
        self._guard, self._tasks, (self._endpoint, scope["path_params"]) = guard, tasks, found
        self._call = Incoming(scope, self.receive, edge)  # type: ignore[arg-type]  # uvicorn's own types

    def begin(self) -> None:
        """The headers are whole; the body may be."""
        self._has_begun = True
        self._try(self._check)
        self.flow.resume_reading()
        if self.waiting_for_100_continue and not self._is_decided:
            self.transport.write(_CONTINUE)
        self.waiting_for_100_continue = False
        if not self.more_body:
            self.end()

    def take(self, part: bytes) -> None:
        """More of the body came."""
        if self._is_decided:
            return
        self.body += part
        if self._has_begun:
            self._try(partial(self._call.check_size, len(self.body)))
        elif len(self.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()

    def end(self) -> None:
        """The body is whole."""
        self.more_body = False
        if self._has_begun and not self._is_decided:
            self._is_decided = True
            self._try(self._run)

    def _check(self) -> None:
        self._guard.admit(self._call.scope)
        self._endpoint.check(self._call)
        self._call.check_length()

    def _run(self) -> None:
        answer = self._endpoint.answer(self._call, bytes(self.body))
        future = answer if isinstance(answer, asyncio.Future) else self._task(answer)
        future.add_done_callback(self._answered)

    def _task(self, work: Any) -> "asyncio.Task[Any]":
        task: asyncio.Task[Any] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # noqa: BLE001  (a bug reaches its caller too, as a 500)
            self._is_decided = True
            asyncio.get_running_loop().call_soon(self._failed, error)

    def _answered(self, answer: "asyncio.Future[Reply]") -> None:
        error = asyncio.CancelledError() if answer.cancelled() else answer.exception()
        if error is not None:
            self._failed(error)
            return
        reply, headers = answer.result(), self._call.names()
        reply.add_headers(headers, self._call.method)
        self._send(reply.status, headers, reply.body)

    def _failed(self, error: BaseException) -> None:
        if isinstance(error, ClientDisconnect | asyncio.CancelledError):
            return  # nobody would read an answer
        response = self._told(error)
        self._send(response.status_code, [*response.raw_headers, *self._call.names()], bytes(response.body))

    def _told(self, error: BaseException) -> Response:
        if isinstance(error, Refused):
            return refused(error, self._call.request_id)
        _log.error("Exception in an operation\n", exc_info=error)
        self.keep_alive = False
        return bug(self._call.request_id)

    def _send(self, status: int, headers: Headers, body: bytes | memoryview) -> None:
        if self.flow.write_paused and not self.disconnected:
            self._task(self._send_later(status, headers, body))
            return
        if not self.disconnected:
            if not self.keep_alive and _CLOSE not in headers:
                headers.append(_CLOSE)
            body = b"" if self._call.method == "HEAD" else body
            lines = [b"%s: %s\r\n" % line for line in headers]
            if len(body) < LARGE:
                self.transport.write(b"".join((STATUS_LINE[status], *lines, b"\r\n", body)))
            else:
                self.transport.write(b"".join((STATUS_LINE[status], *lines, b"\r\n")))
                self.transport.write(body)
        self._finish()

    async def _send_later(self, status: int, headers: Headers, body: bytes | memoryview) -> None:
        await self.flow.drain()
        self._send(status, headers, body)

    def _finish(self) -> None:
        del self._call  # which holds `receive`: a cycle, for the collector to find
        if self.disconnected:
            return
        self.response_started = self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        on_response, self.on_response = self.on_response, _nothing
        on_response()


def _nothing() -> None:
    """It is over."""
