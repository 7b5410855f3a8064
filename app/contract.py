"""Joins the wire's Structs to FastAPI: a route takes one decoded Struct (body, or query of a GET) and gives a Reply.

Each route is an ASGI endpoint of its own in FastAPI's router: what FastAPI does for a function (dependencies, exit
stacks, telemetry) costs four times what a call's own work at the edge does (decision 0007).

A route's docstring is its summary and description; what it takes, answers and refuses is written beside it once, and
both the decoder and the OpenAPI come from that.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from batchmeta.wire.requests import Request as WireRequest
from core.decode_errors import DecodeFault, fault_of
from core.errors import EpochMismatch, Invalid, Refused
from core.names import check_name

from . import keys
from .errors import UnsupportedMediaType, refused
from .incoming import Incoming
from .media_types import JSON, OCTETS, check_accept, check_codings
from .pieces import Pieces
from .reply import Reply

T = TypeVar("T", bound=WireRequest)
D = TypeVar("D")
Route = Callable[[Incoming, T], Awaitable[Reply]]
Decode = Callable[[Incoming, bytes, bool], Any]
"""What a body, or without one the query, says; True: in pieces, beside the loop."""
LARGE = 65_536  # bytes of a body from which on it is decoded beside the loop, in pieces


@dataclass(frozen=True, slots=True)
class Operation:
    """What the OpenAPI says of one route. `replies` by status; examples are JSON values."""

    method: str
    path: str
    operation_id: str
    tag: str
    summary: str
    description: str
    takes: type[WireRequest]
    replies: Mapping[int, Any]
    errors: tuple[str, ...]
    example: Any
    reply_example: Any
    has_etag: bool
    changes: bool
    endpoint: "Endpoint"

    @property
    def is_stream(self) -> bool:
        """Its body, or its reply's, is a file, and passes through in pieces."""
        return isinstance(self.endpoint, StreamEndpoint)


class Endpoint:
    """One route: checks what every call must keep, decodes, calls. As an ASGI application it also sends the reply."""

    media = JSON

    def __init__(self, function: Route[Any], decode: Decode, changes: bool) -> None:
        self._function, self._decode, self._changes = function, decode, changes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = Incoming(scope, receive, scope["app"].state.edge)
        try:
            self.check(call)
            reply = await self._reply(call)
        except Refused as error:
            await refused(error, call.request_id)(scope, receive, send)
        except ClientDisconnect:
            pass  # nobody would read an answer
        else:
            await call.send(reply)

    async def _reply(self, call: Incoming) -> Reply:
        return await self.answer(call, await call.body())

    def answer(self, call: Incoming, body: bytes) -> Awaitable[Reply]:
        """The reply to a call that was checked and whose body is whole. Raises Refused, now or when awaited."""
        if len(body) >= LARGE:
            return self._answer_large(call, body)
        return self._function(call, self._decode(call, body, False))

    async def _answer_large(self, call: Incoming, body: bytes) -> Reply:
        beside = asyncio.get_running_loop().run_in_executor
        return await self._function(call, await beside(call.edge.decoding, self._decode, call, body, True))

    def check(self, call: Incoming) -> None:
        """What is asked of a call before its body is read. Raises Refused."""
        for name, value in call.path_params.items():
            check_name(value, f"path.{name}")
        check_accept(call.header(b"accept"), self.media)
        check_codings(call.scope["state"]["headers"])
        call.epoch = _epoch(call)
        if self._changes:
            key = call.header(b"idempotency-key")
            call.key = None if key is None else keys.checked(key)


class StreamEndpoint(Endpoint):
    """A route that reads its body, or sends its reply, itself and in pieces. It is always an ASGI application."""

    async def _reply(self, call: Incoming) -> Reply:
        return await self._function(call, self._decode(call, b"", False))


class DownloadEndpoint(StreamEndpoint):
    """One that answers with a file."""

    media = OCTETS


class Routes:
    """A group of routes under one tag. Every Operation added is kept in `operations` for the OpenAPI."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.operations: list[Operation] = []

    def route(
        self,
        method: str,
        path: str,
        takes: type[T],
        replies: Mapping[int, Any],
        *,
        errors: tuple[str, ...] = (),
        example: Any = None,
        reply_example: Any = None,
        has_etag: bool = False,
        is_read: bool = False,
        reader: type[Pieces[T]] = Pieces,
        endpoint: "type[Endpoint] | None" = None,
    ) -> Callable[[Route[T]], Route[T]]:
        """Register a function `(Incoming, takes) -> Awaitable[Reply]`; `is_read` where a POST only reads.

        `reader` decodes its bodies. `endpoint`: of what kind it is. A reply of the kind `bytes` is a file.
        """
        changes = method != "GET" and not is_read

        def register(function: Route[T]) -> Route[T]:
            decode = _query_decoder(takes) if method in ("GET", "DELETE") else _body_decoder(takes, reader(takes))

            summary, _, description = (function.__doc__ or "").partition("\n")
            self.operations.append(
                Operation(
                    method,
                    path,
                    function.__name__,
                    self.tag,
                    summary.strip().rstrip("."),
                    _dedent(description),
                    takes,
                    replies,
                    errors,
                    example,
                    reply_example,
                    has_etag,
                    changes,
                    (endpoint or Endpoint)(function, decode, changes),
                )
            )
            return function

        return register


def _epoch(call: Incoming) -> int | None:
    """What X-Epoch asks for; it is looked at again where the call is answered. Raises EpochMismatch."""
    given = call.header(b"x-epoch")
    if given is None or not call.scope["path"].startswith("/v1/"):
        return None
    if not re.fullmatch(r"[0-9]{1,19}", given):
        raise invalid("header.X-Epoch", "must be the whole number that a reply's X-Epoch gave")
    if int(given) != call.edge.executor.reading.epoch:
        raise EpochMismatch
    return int(given)


def _dedent(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines())


def _body_decoder(takes: type[T], pieces: Pieces[T]) -> Decode:
    def decode(call: Incoming, body: bytes, is_large: bool) -> T:
        if call.query and (stray := list(call.query_params)):
            raise invalid(f"query.{stray[0]}", "is no parameter of this call: leave it out, members go into the body")
        if body and call.content_type != JSON:
            raise UnsupportedMediaType(f"send Content-Type: {JSON} (curl --json '…' does), and a JSON body")
        call.identify(body)
        return explained(partial(pieces.decode if is_large else pieces.at_once, body or b"{}"), "body", takes)

    return decode


def _query_decoder(takes: type[T]) -> Decode:
    def decode(call: Incoming, body: bytes, _: bool) -> T:
        items = call.query_params.multi_items()
        names = [name for name, _ in items]
        if len(set(names)) != len(names):
            raise invalid("query", "names a parameter twice: give each once, lists separated by commas")
        if body:
            raise invalid("body", f"a {call.method} takes no body: use query parameters")
        call.identify(b"")
        query = explained(lambda: msgspec.convert(dict(items), takes, strict=False), "query", takes)
        for name in names:
            if getattr(query, name) is None:  # a text that converts to null
                raise invalid(f"query.{name}", "must have a value: leave it out where there is none")
        return query

    return decode


def invalid(loc: str, msg: str) -> Invalid:
    """422 for one member."""
    return Invalid.at(loc, msg)


def explained(decode: Callable[[], D], where: str, takes: Any) -> D:
    """`decode()`, which gives what `takes` says; its failures told as 422 with the place and what to change."""
    try:
        return decode()
    except msgspec.ValidationError as error:
        fault = fault_of(error)
        raise invalid(f"{where}{fault.place}", _told(fault, takes)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise invalid(where, f"is not valid JSON in UTF-8: {error}") from error
    except RecursionError as error:
        raise invalid(where, "is nested too deep: at most 64 levels") from error


def _told(fault: DecodeFault, takes: Any) -> str:
    if fault.unknown is not None:
        return f"has no member {fault.unknown!r}: leave it out (members are listed in /docs)"
    return fault.told(takes)
