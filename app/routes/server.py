"""Routes of the server itself: whether it is alive, whether it is ready, what it is."""

import msgspec

from batchmeta.wire import replies
from batchmeta.wire.requests import Empty
from core.errors import NotReady
from core.limits import MAX_ROWS

from ..contract import Routes
from ..incoming import Incoming
from ..reply import Reply, rfc3339
from ..version import API, VERSION

routes = Routes("server")
_encode = msgspec.json.encode


@routes.route("GET", "/healthz", Empty, {200: replies.Health}, reply_example={"status": "ok"})
async def health(call: Incoming, query: Empty) -> Reply:
    """The process is alive.

    Answers without the engine's thread, also while the journal is replayed.
    """
    return Reply(200, _encode(replies.Health(status="ok")))


@routes.route(
    "GET", "/readyz", Empty, {200: replies.Readiness}, errors=("not-ready",), reply_example={"status": "ready"}
)
async def ready(call: Incoming, query: Empty) -> Reply:
    """The journal is replayed and calls are taken.

    Until then, and while stopping: 503 with the reason, as for every other route.
    """
    reason = call.edge.executor.reading.reason
    if reason is not None:
        raise NotReady.because(reason)
    return Reply(200, _encode(replies.Readiness(status="ready")))


@routes.route(
    "GET",
    "/v1/server",
    Empty,
    {200: replies.Server},
    reply_example={
        "name": "batchmeta",
        "version": "0.1.0",
        "api": "v1",
        "device": "cpu",
        "durability": "wal",
        "epoch": 1,
        "revision": 17,
        "started_at": "2026-11-30T08:00:00.000Z",
        "limits": {
            "max_rows": 65536,
            "max_body_bytes": 67108864,
            "max_checkpoint_bytes": 17179869184,
            "max_cell_bytes": 65536,
            "max_depth": 64,
            "max_page": 10000,
            "max_wait_s": 60,
            "max_waiting_per_client": 10000,
        },
    },
)
async def server(call: Incoming, query: Empty) -> Reply:
    """What this server is, and its limits.

    `durability` is `memory` where all is lost at a restart, indexes included.
    """
    edge = call.edge
    settings, reading = edge.settings, edge.executor.reading
    limits = replies.Limits(
        max_rows=MAX_ROWS,
        max_body_bytes=settings.max_body_bytes,
        max_checkpoint_bytes=settings.max_checkpoint_bytes,
        max_cell_bytes=settings.max_cell_bytes,
        max_depth=64,
        max_page=10_000,
        max_wait_s=60,
        max_waiting_per_client=settings.max_waiting_per_client,
    )
    body = replies.Server(
        name="batchmeta",
        version=VERSION,
        api=API,
        device=edge.device,
        durability=edge.durability,
        epoch=reading.epoch,
        revision=reading.revision,
        started_at=rfc3339(edge.started_at),
        limits=limits,
    )
    return Reply(200, _encode(body))
