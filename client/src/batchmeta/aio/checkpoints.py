"""Calls about checkpoints: save the whole state under a name, and go back to it."""

from os import PathLike
from typing import Literal, cast

from ..arguments import file_path, maybe, text
from ..calls import Call, change, encode, route
from ..connection import Connection
from ..files import OCTETS
from ..wire import replies, requests
from .base import Base, decoded

PROBLEM = "application/problem+json"
PATIENCE_S = 300.0  # a large state takes its time


class CheckpointCalls(Base):
    """A checkpoint is the state of all partitions at one revision, beside a trainer's own checkpoint."""

    _connection: Connection  # which files may take too

    async def create_checkpoint(self, name: str, *, idempotency_key: str | None = None) -> replies.Checkpoint:
        """Save the state; the service goes on meanwhile. `name`: A-Z, a-z, 0-9, and from the second on . _ -

        Raises CheckpointExists, InvalidRequest, JournalUnavailable (retried).
        """
        body = encode(requests.CreateCheckpoint(name=text(name, "name")))
        call = change("POST", route("checkpoints"), idempotency_key, body=body, wait_s=PATIENCE_S)
        return await self._answer(call, replies.Checkpoint)

    async def checkpoints(self) -> list[replies.Checkpoint]:
        """All checkpoints, in the order they were made."""
        return (await self._answer(Call("GET", route("checkpoints")), replies.CheckpointList)).checkpoints

    async def checkpoint(self, name: str) -> replies.Checkpoint:
        """One checkpoint. Raises CheckpointNotFound."""
        return await self._answer(Call("GET", route("checkpoints", name)), replies.Checkpoint)

    async def download_checkpoint(self, name: str, path: str | PathLike[str]) -> replies.Checkpoint:
        """Its file, as the file `path`: in the folder of the trainer's own checkpoint, say.

        `path` is written aside, compared with the checkpoint's `sha256`, and replaced once all of it is on disk.
        Raises CheckpointNotFound, CheckpointCorrupt, OSError; UnreadableReply where another file came.
        """
        into = file_path(path)
        found = await self.checkpoint(name)
        content = route("checkpoints", name, "content")
        call = Call("GET", content, headers={"Accept": f"{OCTETS}, {PROBLEM}"}, wait_s=PATIENCE_S)
        await self._connection.save_answer(call, into, found.sha256)
        return found

    async def upload_checkpoint(self, name: str, path: str | PathLike[str]) -> replies.Checkpoint:
        """Give a file that was downloaded, from this service or another one, to this service, under this name.

        The state stays as it is until `restore_checkpoint`. Sent again, the same file is there already, so the call
        needs no key. Raises CheckpointExists where another file has the name, CheckpointCorrupt for what is no
        checkpoint, BodyTooLarge, JournalUnavailable (retried), OSError.
        """
        call = Call("PUT", route("checkpoints", name, "content"), wait_s=PATIENCE_S)
        answer = await self._connection.send_file(call, file_path(path))
        return decoded(answer, replies.Checkpoint)

    async def delete_checkpoint(self, name: str, *, idempotency_key: str | None = None) -> None:
        """Delete its file; the state stays as it is. Raises CheckpointNotFound."""
        await self._answer(change("DELETE", route("checkpoints", name), idempotency_key), replies.DeletedCheckpoint)

    async def restore_checkpoint(
        self,
        name: str,
        *,
        revived: Literal["as_is", "unproduced"] | None = None,
        idempotency_key: str | None = None,
    ) -> replies.Restored:
        """Go back to a checkpoint: a new epoch begins, and who waits or is pinned to another is EpochMismatch.

        `revived="unproduced"`: rows that were cleared, clearing or revoked since, whose bytes may be gone, are not
        ready in any field. This client goes on in the new epoch. Raises CheckpointNotFound, CheckpointCorrupt.
        """
        named = cast('Literal["as_is", "unproduced"] | None', maybe(text, revived, "revived"))
        body = encode(requests.RestoreCheckpoint(revived=named))
        path = route("checkpoints", name, "restore")
        call = change("POST", path, idempotency_key, body=body, wait_s=PATIENCE_S)
        reply = await self._answer(call.in_any_epoch(), replies.Restored)
        self._connection.new_epoch()
        return reply
