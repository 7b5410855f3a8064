"""Routes of checkpoints: the state saved under a name, to go back to together with a trainer's own."""

import asyncio

from batchmeta.wire import replies
from batchmeta.wire.requests import CreateCheckpoint, Empty, RestoreCheckpoint
from core.operations import checkpoints
from core.snapshot.checkpoint_folder import checked
from core.snapshot.checkpoint_transfers import open_file, same

from ..contract import DownloadEndpoint, Routes, StreamEndpoint
from ..digests import sha256_of
from ..etags import names_weakly
from ..incoming import Incoming
from ..reply import Reply
from ..uploads import check_upload, uploaded
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
    "GET",
    f"{_ONE}/content",
    Empty,
    {200: bytes},
    errors=("checkpoint-not-found", "checkpoint-corrupt"),
    has_etag=True,
    endpoint=DownloadEndpoint,
)
async def get_checkpoint_content(call: Incoming, query: Empty) -> Reply:
    """Download a checkpoint's file.

    `PUT` of the same path takes it, here or in another server, and `--restore` begins with it. It is compared with its
    `sha256` before its first byte is sent. `Repr-Digest` (RFC 9530) has that digest, and so has the `ETag`.
    """
    folder, name = call.edge.checkpoints.folder, _name(call)
    note = await asyncio.to_thread(folder.find, name)
    tag = f'"{note.sha256}"'
    if names_weakly(call.header(b"if-none-match"), tag):
        return Reply(304, b"", tag)
    return render.content(*await asyncio.to_thread(open_file, folder, name))


@routes.route(
    "PUT",
    f"{_ONE}/content",
    Empty,
    {200: replies.Checkpoint, 201: replies.Checkpoint},
    errors=("checkpoint-exists", "checkpoint-corrupt"),
    reply_example={200: _MADE, 201: _MADE},
    endpoint=StreamEndpoint,
)
async def put_checkpoint_content(call: Incoming, query: Empty) -> Reply:
    """Upload a checkpoint's file.

    The body is the file as it was downloaded, here or from another server. It is taken whole or not at all: 201 once it
    was looked through and is on disk under this name; 200 where the same file is there already. The state stays as it
    is until a restore. With `Repr-Digest: sha-256=:…:` (RFC 9530) the body is compared with that digest.
    """
    name, digest = _name(call), sha256_of(call.header(b"repr-digest"))
    check_upload(call)
    checkpoints_, key = call.edge.checkpoints, call.key
    if key is None:  # else it may be a call of before, whose reply is kept
        await asyncio.to_thread(same, checkpoints_.folder, name, digest, call.declared_bytes)
    async with uploaded(call, checkpoints_.folder, name, digest) as received:
        call.identify(received.digest)
        known = await call.kept()
        if known is not None:
            return known
        note, is_new = await checkpoints_.take(name, key, received)
    is_ours = is_new or (key is not None and note.key == key)
    return await call.keeping(render.checkpoint(note, 201 if is_ours else 200))


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
