"""The protocol of one connection: uvicorn's, held to RFC 9112; what it refuses gets a problem, as everywhere.

A client may close its sending side and still be answered; an absolute target names the host; bytes that are no HTTP get
a problem, once what came whole before them is answered. What a request means is decided behind it.
"""

import re
import sys
from asyncio import Event
from collections.abc import Iterator
from typing import cast
from urllib.parse import unquote

from httptools import parse_url
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from .direct import Direct
from .errors import problem
from .guard import Guard
from .headers import by_name
from .incoming import HALF_CLOSED

_ABSOLUTE = re.compile(rb"[^/?#]+://([^/?#]*)/?(.*)", re.DOTALL)


class Connection(HttpToolsProtocol):
    """`_running` is the request that is being answered; those that came behind it are in `pipeline`."""

    _running: RequestResponseCycle | None = None

    def on_headers_complete(self) -> None:
        """As uvicorn's; of an absolute target the host counts, whatever Host says (RFC 9112 section 3.2.2)."""
        if self.transport.is_closing():
            return
        absolute = None if self.url.startswith(b"/") else _ABSOLUTE.fullmatch(self.url)
        if absolute is not None:
            self.url = b"/" + absolute[2]
            self.headers[:] = [(name, absolute[1] if name == b"host" else value) for name, value in self.headers]
        version = self.parser.get_http_version()
        if version == "1.0":
            self.expect_100_continue = False  # it would take it for the answer (RFC 9110 section 10.1.1)
        self._name(version)
        before, self.cycle = self.cycle, self._cycle(version)
        if before is None or before.response_complete:
            self._running = self.cycle
            self._start(self.cycle)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def _name(self, version: str) -> None:
        """What the scope says of the request line."""
        url = parse_url(self.url)
        path = url.path.decode("ascii")
        self.scope["method"], self.scope["http_version"] = self.parser.get_method().decode("ascii"), version
        self.scope["path"], self.scope["raw_path"] = unquote(path) if "%" in path else path, url.path
        self.scope["query_string"] = url.query or b""

    def _cycle(self, version: str) -> RequestResponseCycle:
        guard = cast(Guard, self.app)
        table = guard.direct
        found = None if table is None else table.find(self.scope["method"], self.scope["path"])
        cycle = (RequestResponseCycle if found is None else Direct)(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=version != "1.0" and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        if isinstance(cycle, Direct) and table is not None and found is not None:
            cycle.aim(guard, table.edge, found, self.tasks)
        return cycle

    def _start(self, cycle: RequestResponseCycle) -> None:
        if isinstance(cycle, Direct):
            cycle.begin()
            return
        task = self.loop.create_task(cycle.run_asgi(self.app))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def _start_asgi_task(self, cycle: RequestResponseCycle, _: ASGI3Application) -> None:
        """The next one in the pipeline: in a turn of its own, since an answer may be there at once."""
        self._running = cycle
        self.loop.call_soon(self._start, cycle)

    def on_body(self, body: bytes) -> None:
        """Part of the newest request's body."""
        if isinstance(self.cycle, Direct):
            self.cycle.take(body)
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The newest request is whole."""
        if isinstance(self.cycle, Direct):
            self.cycle.end()
        else:
            super().on_message_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """The request is answered as it is; the parser reads nothing behind it, so that the connection ends there."""
        self._stop_reading()

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn closes, and says None
        """The client sends no more: whether to stay for the answers. Calls that wait end, for it may have left."""
        for cycle in self._unanswered():
            cycle.scope["state"][HALF_CLOSED] = True
            cycle.message_event.set()
        return self._stop_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """uvicorn tells the newest request alone."""
        for cycle in self._unanswered():
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """What came cannot be read as HTTP, and nothing that follows can."""
        if self._stop_reading():
            return
        guard = cast(Guard, self.app)
        request_id = guard.request_id(by_name(self.headers or ()))
        detail = f"what came is no HTTP/1.1 request ({_why() or msg}): HTTP/1.1 is spoken here, without TLS"
        reply = problem("bad-request", detail, request_id, {"Connection": "close"})
        lines = [*reply.raw_headers, *guard.names(request_id)]
        self.transport.write(STATUS_LINE[400] + b"".join(b"%s: %s\r\n" % line for line in lines) + b"\r\n" + reply.body)
        self.transport.close()

    def _unanswered(self) -> Iterator[RequestResponseCycle]:
        """The newest first."""
        yield from (cycle for cycle, _ in self.pipeline)
        if self._running is not None and not self._running.response_complete:
            yield self._running

    def _stop_reading(self) -> bool:
        """The connection ends with the answer to the last request that came whole; False if there is none."""
        self.parser = _Deaf()  # type: ignore[assignment]  # as much of one as is still used
        last = next((cycle for cycle in self._unanswered() if not cycle.more_body), None)
        if last is not None:
            last.keep_alive = False
        return last is not None


class _Deaf:
    """A parser for what cannot be parsed."""

    def feed_data(self, data: bytes) -> None:
        """Nothing comes of it."""


def _why() -> str:
    """What the parser said: it is called while that is handled."""
    error = sys.exception()
    return str((error and error.__context__) or error or "")
