"""The real application, called as an ASGI server calls it, in this loop and without a socket."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import httpx
from starlette.types import Message

from app.application import build, new_edge
from app.settings import load
from core.runtime.executor import Executor


class Application:
    """Built once; it serves whichever executor it is given."""

    def __init__(self, executor: Executor, *arguments: str) -> None:
        settings = load(arguments, {})
        self._edge = new_edge(executor, settings, "cpu", "memory", 0.0)
        self._guard = build(executor, settings, self._edge, lambda: None, lambda: None)

    def transport(self) -> httpx.ASGITransport:
        """For a client of whichever executor it serves."""
        return httpx.ASGITransport(self._guard)

    def serve(self, executor: Executor) -> None:
        """Calls go to this one from here on."""
        self._edge.executor = self._edge.checkpoints.executor = self._guard._executor = executor
        self._edge.waiting.clear()

    async def request(
        self, method: str, target: str, body: Any, headers: Mapping[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        """(status, headers, body); `target` is path and query, `body` what JSON can say, or None."""
        content = b"" if body is None else json.dumps(body).encode()
        told: list[Message] = []
        await self._guard(_scope(method, target, headers, bool(content)), _Client(content).receive, _into(told))
        start, *parts = told
        names = {name.decode(): value.decode("latin-1") for name, value in start["headers"]}
        return start["status"], names, b"".join(part["body"] for part in parts)


def _into(told: list[Message]) -> Any:
    async def send(message: Message) -> None:
        told.append(message)

    return send


class _Client:
    """Sends its body at once and never leaves."""

    def __init__(self, content: bytes) -> None:
        self._messages: list[Message] = [{"type": "http.request", "body": content, "more_body": False}]

    async def receive(self) -> Message:
        if self._messages:
            return self._messages.pop()
        await asyncio.Event().wait()
        raise AssertionError("nobody leaves")


def _scope(method: str, target: str, headers: Mapping[str, str], has_body: bool) -> dict[str, Any]:
    path, _, query = target.partition("?")
    named = {"host": "localhost", **headers, **({"content-type": "application/json"} if has_body else {})}
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
        "client": ("127.0.0.1", 1),
        "server": ("localhost", 80),
    }
