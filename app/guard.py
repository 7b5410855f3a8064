"""The outermost layer, pure ASGI: who may call, whether we are ready, and the headers that every reply carries.

Refused here: a Host we are not, a change from a foreign page, an address that hides a slash or is no UTF-8, any call
before the replay.
"""

import secrets
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.executor import Executor

from .errors import EdgeRefused, edge_refused

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_ALWAYS = frozenset({"/healthz", "/readyz"})


class Guard:
    """Wraps the FastAPI application. `hosts` are the names we go by, beside the loopback ones; `*` is any."""

    def __init__(self, app: ASGIApp, executor: Executor, hosts: Iterable[str]) -> None:
        self._app, self._executor = app, executor
        self._hosts = LOOPBACK | frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = _request_id(headers)
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                out = MutableHeaders(scope=message)
                out["X-Request-ID"] = request_id
                out["X-Epoch"] = str(self._executor.reading.epoch)
            await send(message)

        try:
            self._check(scope, headers)
        except EdgeRefused as error:
            reply = edge_refused(error, request_id)
            await reply(scope, receive, send_named)
            return
        await self._app(scope, receive, send_named)

    def _check(self, scope: Scope, headers: Headers) -> None:
        _check_target(scope)
        host = _name(headers.get("host", ""))
        if "*" not in self._hosts and host not in self._hosts:
            raise EdgeRefused(
                "forbidden", f"this service is not {host!r}: use a name it goes by, or add --allowed-hosts"
            )
        if scope["method"] not in _SAFE:
            self._check_origin(headers)
        reason = self._executor.reading.reason
        if reason is not None and scope["path"] not in _ALWAYS:
            raise EdgeRefused.not_ready(reason)

    def _check_origin(self, headers: Headers) -> None:
        origin = headers.get("origin")
        own = {f"{scheme}://{headers.get('host', '')}" for scheme in ("http", "https")}
        if headers.get("sec-fetch-site") == "cross-site" or (origin is not None and origin not in own):
            raise EdgeRefused("forbidden", "a page of another origin may not change anything here: call from a worker")


def _check_target(scope: Scope) -> None:
    raw = scope.get("raw_path", b"").lower()
    if b"%2f" in raw or b"%5c" in raw:
        raise EdgeRefused("invalid-request", "path: a name must hold no / or \\, encoded or not")
    for part, target in (("path", raw), ("query", scope["query_string"])):
        try:
            unquote_to_bytes(target).decode()
        except UnicodeDecodeError as error:
            raise EdgeRefused("invalid-request", f"{part}: must be percent-encoded UTF-8") from error


def _name(host: str) -> str:
    """Host header without its port and brackets, lower case."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return host


def _request_id(headers: Headers) -> str:
    given = headers.get("x-request-id", "")
    if 1 <= len(given) <= 128 and given.isascii() and given.isprintable():
        return given
    return secrets.token_hex(8)
