"""Checks every request before the application sees it, and adds the headers that every reply carries. Pure ASGI.

Refused here: a Host we are not, a header that stands twice, a change from a foreign page, an address that hides a
slash or is no UTF-8, any call before the replay.
"""

import secrets
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import count
from urllib.parse import unquote_to_bytes, urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.errors import Invalid, NotReady, Refused
from core.runtime.executor import Executor

from .errors import BadRequest, Forbidden, refused
from .headers import by_name, check_once
from .incoming import names
from .table import RouteTable

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_ALWAYS = frozenset({"/healthz", "/readyz"})


class Guard:
    """Wraps the FastAPI application. `hosts` are the names we go by, beside the loopback ones; `*` is any.

    `direct`: the operations that a connection may call past the application.
    """

    def __init__(
        self, app: ASGIApp, executor: Executor, hosts: Iterable[str], direct: RouteTable | None = None
    ) -> None:
        self._app, self._executor, self.direct = app, executor, direct
        self._hosts = LOOPBACK | frozenset(hosts)
        self._ids = map(f"{secrets.token_hex(4)}-{{:x}}".format, count())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *self.names(scope["state"]["request_id"])]
            await send(message)

        app = self._app
        try:
            self.admit(scope)
        except Refused as error:
            app = refused(error, scope["state"]["request_id"])
        scope["state"]["send"] = send
        try:
            await app(scope, receive, send_named)
        finally:
            scope["state"].clear()  # `send` is uvicorn's, which holds the scope: a cycle, for the collector to find

    def admit(self, scope: Scope) -> None:
        """Name the request, then check it. Raises Refused."""
        headers = by_name(scope["headers"])
        scope.setdefault("state", {}).update(request_id=self.request_id(headers), headers=headers)
        self._check(scope, headers)

    def request_id(self, headers: Mapping[bytes, bytes]) -> str:
        """The caller's or a new one."""
        return _given_id(headers) or next(self._ids)

    def names(self, request_id: str) -> list[tuple[bytes, bytes]]:
        """The headers that every reply carries."""
        return names(request_id, self._executor)

    def _check(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        if len(headers) != len(scope["headers"]):
            check_once(scope["headers"])
            scope["headers"] = list(headers.items())
        if b"upgrade" in headers:
            _check_upgrade(headers)
        _check_target(scope)
        host = _name(headers.get(b"host", b""))
        if host not in self._hosts:
            self._check_strange(host, scope, headers)
        if scope["method"] not in _SAFE:
            _check_origin(headers)
        reason = self._executor.reading.reason
        if reason is not None and scope["path"] not in _ALWAYS:
            raise NotReady.because(reason)

    def _check_strange(self, host: str, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        if b"host" not in headers and scope["http_version"] == "1.1":
            raise BadRequest("header Host is missing: HTTP/1.1 needs it, with the name of this service")
        if "*" not in self._hosts:
            raise Forbidden(f"this service is not {host!r}: use a name it goes by, or add --allowed-hosts")


def _check_upgrade(headers: Mapping[bytes, bytes]) -> None:
    """Without a body such a call is answered as any other; a body the parser takes for the other protocol's bytes."""
    has_body = b"transfer-encoding" in headers or headers.get(b"content-length", b"0").strip(b"0")
    if has_body and b"upgrade" in headers.get(b"connection", b"").lower():
        raise BadRequest("header Upgrade: only HTTP/1.1 is spoken here: send a body without this header")


def _check_origin(headers: Mapping[bytes, bytes]) -> None:
    origin = headers.get(b"origin")
    host = headers.get(b"host", b"")
    is_own = origin is None or origin in (b"http://" + host, b"https://" + host)
    if headers.get(b"sec-fetch-site") == b"cross-site" or not is_own:
        raise Forbidden("a page of another origin may not change anything here: call from a worker")


def _check_target(scope: Scope) -> None:
    raw = scope.get("raw_path", b"")
    if (raw + scope["query_string"]).isascii() and b"%" not in raw + scope["query_string"]:
        return
    raw = raw.lower()
    if b"%2f" in raw or b"%5c" in raw:
        raise Invalid("path: a name must hold no / or \\, encoded or not")
    for part, target in (("path", raw), ("query", scope["query_string"])):
        try:
            unquote_to_bytes(target).decode()
        except UnicodeDecodeError as error:
            raise Invalid(f"{part}: must be percent-encoded UTF-8") from error


@lru_cache(256)
def _name(host: bytes) -> str:
    """Host header without its port and brackets, lower case."""
    text = host.decode("latin-1")
    try:
        return (urlsplit(f"//{text}").hostname or "").lower()
    except ValueError:
        return text


def _given_id(headers: Mapping[bytes, bytes]) -> str | None:
    given = headers.get(b"x-request-id", b"").decode("latin-1")
    if 1 <= len(given) <= 128 and given.isascii() and given.isprintable():
        return given
    return None
