"""The end of a run: every byte out of storage, every sample and partition out of the service.

The bytes to delete come from the service's plan of a clear, and not from memory; the account then compares the two.
"""

from collections.abc import Iterator

from batchmeta import Clear

from .account import note
from .desk import Desk
from .storage import cell_name

CLEARING = "clear"


async def clear(desk: Desk, partition: str) -> None:
    """All rows of a partition, and then the partition."""
    tally = desk.tally(CLEARING)
    planned = await tally.call(desk.client.plan_clear(partition, all_rows=True))
    cleared = await finish(desk, planned)
    left = await tally.call(desk.client.delete_partition(partition))
    # Entered only when the service agrees on the number, so that a row it kept or lost shows in the account.
    if cleared == planned.count and left.cleared_samples == 0:
        note(tally.deleted, partition, planned.global_indexes)
    desk.advance(CLEARING, planned.count)


async def finish(desk: Desk, planned: Clear) -> int:
    """Delete the bytes, then commit; rows cleared. After a crash in between the pending clear still names the bytes."""
    tally = desk.tally(CLEARING)
    tally.removed += desk.storage.delete(list(_written(planned)))
    return (await tally.call(desk.client.commit_clear(planned.clear_id))).cleared


async def finish_pending(desk: Desk) -> None:
    """Finish the clears that a process left behind when it was killed."""
    for line in await desk.client.clears("pending"):
        await finish(desk, await desk.client.seen_clear(line.clear_id))


def _written(planned: Clear) -> Iterator[str]:
    for name, field in planned.fields.items():
        for index, is_written in zip(planned.global_indexes, field.written, strict=True):
            if is_written:
                yield cell_name(index, name)
