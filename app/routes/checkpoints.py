"""Routes of checkpoints: the state saved under a name, to go back to together with a trainer's own."""

import asyncio

from batchmeta.wire import replies
from batchmeta.wire.requests import CreateCheckpoint, Empty, RestoreCheckpoint
from core.operations import checkpoints
from core.snapshot.checkpoint_folder import checked

from ..contract import Routes
from ..incoming import Incoming
from ..reply import Reply
from . import checkpoints_render as render

routes = Routes("checkpoints")
_ONE = "/v1/checkpoints/{name}"
_MADE = {
    "name": "step-40",
    "revision": 812,
    "bytes": 91324,
    "sha256": "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
    "created_at": "2026-11-30T08:00:00.000Z",
}


@routes.route(
    "POST",
    "/v1/checkpoints",
    CreateCheckpoint,
    {201: replies.Checkpoint},
    errors=("checkpoint-exists", "checkpoint-corrupt"),
    example={"name": "step-40"},
    reply_example=_MADE,
)
async def create_checkpoint(call: Incoming, body: CreateCheckpoint) -> Reply:
    """Save the state under a name.

    All of it as it is at one revision: partitions, tasks, consumption, attempts, pending clears and the replies
    kept by key. Calls go on meanwhile; the reply comes once the file is on disk. A name is chosen once.
    """
    name = checked(body.name, "body.name")
    known = await call.kept()
    if known is not None:
        return known
    return await call.keeping(render.checkpoint(await call.edge.checkpoints.make(name, call.key), 201))


@routes.route("GET", "/v1/checkpoints", Empty, {200: replies.CheckpointList}, reply_example={"checkpoints": [_MADE]})
async def list_checkpoints(call: Incoming, query: Empty) -> Reply:
    """All checkpoints, in the order they were made; what is damaged or of something else is left out."""
    return render.checkpoints(await asyncio.to_thread(call.edge.checkpoints.folder.all))


@routes.route(
    "GET",
    _ONE,
    Empty,
    {200: replies.Checkpoint},
    errors=("checkpoint-not-found", "checkpoint-corrupt"),
    reply_example=_MADE,
)
async def get_checkpoint(call: Incoming, query: Empty) -> Reply:
    """One checkpoint."""
    return render.checkpoint(await asyncio.to_thread(call.edge.checkpoints.folder.find, _name(call)))


@routes.route(
    "DELETE",
    _ONE,
    Empty,
    {200: replies.DeletedCheckpoint},
    errors=("checkpoint-not-found", "checkpoint-corrupt"),
    reply_example={},
)
async def delete_checkpoint(call: Incoming, query: Empty) -> Reply:
    """Delete a checkpoint's file. The state stays as it is, and so does a file that is none of ours."""
    name = _name(call)
    known = await call.kept()
    if known is not None:
        return known
    await asyncio.to_thread(call.edge.checkpoints.folder.delete, name)
    return await call.keeping(render.deleted_checkpoint())


@routes.route(
    "POST",
    f"{_ONE}/restore",
    RestoreCheckpoint,
    {200: replies.Restored},
    errors=("checkpoint-not-found", "checkpoint-corrupt"),
    example={"revived": "unproduced"},
    reply_example={"epoch": 2, "revived": {"count": 3, "ranges": [[16, 17], [40, 40]]}, "burnt": [64, 127]},
)
async def restore_checkpoint(call: Incoming, body: RestoreCheckpoint) -> Reply:
    """Go back to a checkpoint.

    The state is what it was, and a new epoch begins: callers that send `X-Epoch` are refused with 409 `epoch-mismatch`
    until they send the new one, and so are all calls that wait. Leases that were open then are released, and shares of
    samplers too: their workers are gone, so their samples wait for anyone, and the hand-out is no attempt.

    `revived` are samples that were cleared, clearing or revoked since, whose bytes may be gone: `revived: "unproduced"`
    makes them as if none of their fields was ever produced. `burnt` are the indexes given out since; they are never
    given out again.
    """
    known = await call.kept()
    if known is not None:
        return known
    saved = await asyncio.to_thread(call.edge.checkpoints.folder.read, _name(call))
    return await call.engine(checkpoints.restore, render.went, saved, body.revived == "unproduced")


def _name(call: Incoming) -> str:
    return checked(call.path_params["name"], "path.name")
