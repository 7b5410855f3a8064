"""Calls about checkpoints: save the whole state under a name, and go back to it."""

from typing import Literal, cast

from ..arguments import maybe, text
from ..calls import Call, change, encode, route
from ..wire import replies, requests
from .base import Base

PATIENCE_S = 300.0  # a large state takes its time


class CheckpointCalls(Base):
    """A checkpoint is the state of all partitions at one revision, beside a trainer's own checkpoint."""

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
