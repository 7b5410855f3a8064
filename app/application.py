"""Puts the ASGI application together: routes, error handlers, the OpenAPI and its page, all behind the guard."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path

import orjson
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route, compile_path
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from core.journal.contract import Durability
from core.runtime.executor import Executor
from core.samplers import Sampler
from core.snapshot.checkpoint_folder import CheckpointFolder
from core.snapshot.received_file import sweep

from .contract import Operation
from .edge import Edge
from .errors import on_bug, on_http_exception
from .guard import Guard
from .openapi import document
from .routes import ALL
from .settings import Settings
from .snapshots.checkpoints import Checkpoints
from .snapshots.compaction import Compaction
from .table import RouteTable
from .version import VERSION

STATIC = Path(str(resources.files(__package__) / "static"))
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>batchmeta API</title>
<link rel="icon" href="/static/favicon-32x32.png">
<link rel="stylesheet" href="/static/swagger-ui.css">
</head>
<body>
<div id="page"></div>
<script src="/static/swagger-ui-bundle.js"></script>
<script src="/static/docs.js"></script>
</body>
</html>
"""


def openapi() -> dict[str, object]:
    """The OpenAPI document of all routes."""
    return document(operation for routes in ALL for operation in routes.operations)


class Api(FastAPI):
    """FastAPI with the two layers that are used: a bug becomes a 500, the router's own refusals become problems.

    Endpoints turn their refusals into replies themselves. FastAPI's telemetry, body limit and exit stacks are left out.
    """

    def build_middleware_stack(self) -> ASGIApp:
        """The layers around the router."""

        async def told(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                await self.router(scope, receive, send)
            except HTTPException as error:
                await on_http_exception(Request(scope), error)(scope, receive, send)

        return ServerErrorMiddleware(told, on_bug)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await Starlette.__call__(self, scope, receive, send)


def build(
    executor: Executor,
    settings: Settings,
    edge: Edge,
    on_start: Callable[[], None],
    on_stop: Callable[[], Awaitable[None]],
) -> Guard:
    """The ASGI application. The executor starts with it and is closed with it."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        executor.start()
        executor.tidy()
        await asyncio.to_thread(sweep, edge.checkpoints.folder.path)
        on_start()
        yield
        await on_stop()
        await executor.close()

    app = Api(
        title="batchmeta",
        version=VERSION,
        lifespan=lifespan,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.edge = edge
    app.state.methods_of = _methods_of
    for operation in sorted(_OPERATIONS, key=_turn):
        app.router.routes.append(
            Route(operation.path, operation.endpoint, methods=[operation.method], name=operation.operation_id)
        )
    _add_docs(app)
    return Guard(app, executor, (settings.host, *settings.allowed_hosts), RouteTable(_AT_ONCE, edge))


_BUSIEST = ("produce", "claim", "ack", "read", "insert")
_OPERATIONS = [operation for routes in reversed(ALL) for operation in routes.operations]
_AT_ONCE = [operation for operation in _OPERATIONS if not operation.is_stream]
_PATHS = [(operation.method, compile_path(operation.path)[0]) for operation in _OPERATIONS]


def _turn(operation: Operation) -> int:
    """The router tries one route after the other, which is a tenth of what a call costs there: the busiest first."""
    return _BUSIEST.index(operation.operation_id) if operation.operation_id in _BUSIEST else len(_BUSIEST)


def _methods_of(path: str) -> str:
    """What `Allow` says of a path: the router itself names the methods of one route alone. A HEAD is as its GET."""
    methods = {method for method, pattern in _PATHS if pattern.match(path)}
    return ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))


def _add_docs(app: FastAPI) -> None:
    body = orjson.dumps(openapi())

    async def openapi_json(_: Request) -> Response:
        return Response(body, media_type="application/json", headers={"Cache-Control": "no-store"})

    async def docs(_: Request) -> Response:
        return HTMLResponse(_PAGE, headers={"Cache-Control": "no-store"})

    app.add_route("/openapi.json", openapi_json, include_in_schema=False)
    app.add_route("/docs", docs, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")


def new_edge(
    executor: Executor,
    settings: Settings,
    device: str,
    durability: Durability,
    started_at: float,
    samplers: Mapping[str, type[Sampler]] | None = None,
    compaction: Compaction | None = None,
) -> Edge:
    """What routes share; the boot id tells this start's ETags from another's. `compaction` makes the checkpoints."""
    beside = "data/journal" if compaction is None else str(compaction.folder)
    folder = CheckpointFolder(Path(settings.checkpoints or f"{beside}.checkpoints"), settings.min_free_bytes)
    checkpoints = Checkpoints(folder, executor, compaction)
    return Edge(executor, settings, device, durability, secrets.token_hex(4), started_at, checkpoints, samplers or {})
