"""One HTTP/1.1 connection on asyncio: it sends a request and parses the answer with httptools (llhttp, in C).

Imported only where httptools is installed.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import cast

import httptools
import httpx


class ReadAnswer:
    """An answer as it was read: its body is there, all else is made of its bytes when somebody asks."""

    __slots__ = ("_fields", "_reason", "content", "status_code")

    def __init__(self, status_code: int, reason: bytes, fields: Sequence[tuple[bytes, bytes]], content: bytes) -> None:
        self.status_code, self._reason, self._fields, self.content = status_code, reason, fields, content

    @property
    def headers(self) -> httpx.Headers:
        """Its header fields."""
        return httpx.Headers(self._fields)

    @property
    def reason_phrase(self) -> str:
        """What stands behind the status."""
        return self._reason.decode("ascii", errors="replace")

    @property
    def text(self) -> str:
        """The body in the encoding that the header names."""
        return httpx.Response(self.status_code, headers=self.headers, content=self.content).text

    def unpacked(self) -> "ReadAnswer":
        """The same without its Content-Encoding, which nobody asked for. Raises httpx.DecodingError."""
        packed = httpx.Response(self.status_code, headers=self.headers, content=self.content)
        fields = [field for field in self._fields if field[0].lower() != b"content-encoding"]
        return ReadAnswer(self.status_code, self._reason, fields, packed.content)


class HttpConnection(asyncio.BufferedProtocol):
    """One request at a time. Whatever breaks an exchange (an error, silence, its caller's end) ends the connection.

    `buffer`: what comes is received there and parsed at once, so connections of one loop may share it.
    """

    def __init__(self, when_lost: Callable[["HttpConnection"], None], buffer: bytearray) -> None:
        self._loop, self._when_lost = asyncio.get_running_loop(), when_lost
        self._buffer = memoryview(buffer)
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[ReadAnswer] | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._silence_s = self._heard = self.idle_since = 0.0
        self._unsent = 0
        self._forget()

    @property
    def is_open(self) -> bool:
        """It takes another request."""
        return self._transport is not None and not self._transport.is_closing()

    async def exchange(self, request: bytes, silence_s: float) -> ReadAnswer:
        """Send it; the answer to it. `silence_s`: seconds without a byte in or out after which it is given up.

        Raises httpx.RequestError.
        """
        assert self._transport is not None  # noqa: S101 - it is made when the connection is
        waiter: asyncio.Future[ReadAnswer] = self._loop.create_future()
        self._waiter = waiter
        self._silence_s, self._heard = silence_s, self._loop.time()
        self._look_at(self._heard + silence_s)
        try:
            self._transport.write(request)
            self._unsent = self._transport.get_write_buffer_size()
            return await waiter
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        """End it at once. Nothing that was promised to the service is lost: an answer either came or did not."""
        if self._transport is not None:
            self._transport.abort()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - a larger one would save nothing
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._heard = self._loop.time()
        if self._waiter is None or self._parser is None:  # nobody asked
            self.abort()
            return
        try:
            self._parser.feed_data(self._buffer[:nbytes])
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(httpx.RemoteProtocolError(f"no answer in HTTP/1.1: {error}"))

    def connection_lost(self, error: Exception | None) -> None:
        if error is None and self._is_begun and not self._is_framed:
            self._finish()  # of a body without a length, the end of the connection is the end
        elif error is None:
            self._fail(httpx.RemoteProtocolError("the other side closed the connection within an answer"))
        else:
            lost = httpx.ReadError(str(error))
            lost.__cause__ = error
            self._fail(lost)
        self._stop_looking()
        self._parser = None  # they hold each other
        self._when_lost(self)

    # What the parser calls.

    def on_message_begin(self) -> None:
        if self._waiter is None:  # a second answer to one request
            self.abort()

    def on_status(self, reason: bytes) -> None:
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        names = {name.lower() for name, _ in self._fields}
        self._is_begun, self._is_packed = True, b"content-encoding" in names
        self._is_framed = b"content-length" in names or b"transfer-encoding" in names

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        parser = self._parser
        if parser is None or parser.get_status_code() < 200:  # "continue": the answer itself comes yet
            self._forget()
            return
        if not parser.should_keep_alive() and self._transport is not None:
            self._transport.close()
        self._finish()

    def _finish(self) -> None:
        waiter, self._waiter, parser = self._waiter, None, self._parser
        if waiter is not None and not waiter.done() and parser is not None:
            body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            answer = ReadAnswer(parser.get_status_code(), self._reason, self._fields, body)
            try:
                waiter.set_result(answer.unpacked() if self._is_packed else answer)
            except httpx.DecodingError as error:
                waiter.set_exception(error)
        self._forget()

    def _forget(self) -> None:
        self._reason, self._fields, self._parts = b"", list[tuple[bytes, bytes]](), list[bytes]()
        self._is_begun = self._is_framed = self._is_packed = False

    def _look_at(self, when: float) -> None:
        """Look then, or before: most exchanges end first, and the next one finds the timer that they leave."""
        if self._watch is None or self._watch.when() > when:
            self._stop_looking()
            self._watch = self._loop.call_at(when, self._look)

    def _stop_looking(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _look(self) -> None:
        """Time is up, unless a byte came, or the system took one, meanwhile; or nobody waits."""
        self._watch = None
        if self._waiter is None or self._transport is None:
            return
        now, unsent = self._loop.time(), self._transport.get_write_buffer_size()
        if unsent < self._unsent:
            self._unsent, self._heard = unsent, now
        end = self._heard + self._silence_s
        if end > now:
            self._look_at(end)
        else:
            self._fail(httpx.ReadTimeout(f"nothing came for {self._silence_s:g} s"))

    def _fail(self, error: httpx.TransportError) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)
        self.abort()
