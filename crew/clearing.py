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
    """Plan, delete the bytes, commit: after a crash in between, the pending clear still names the bytes."""
    tally = desk.tally(CLEARING)
    planned = await tally.call(desk.client.plan_clear(partition, all_rows=True))
    indexes = planned.global_indexes
    tally.removed += desk.storage.delete(list(_written(planned)))
    committed = await tally.call(desk.client.commit_clear(planned.clear_id))
    left = await tally.call(desk.client.delete_partition(partition))
    # Entered only when the service agrees on the number, so that a row it kept or lost shows in the account.
    if committed.cleared == len(indexes) and left.cleared_samples == 0:
        note(tally.deleted, partition, indexes)
    desk.advance(CLEARING, len(indexes))


def _written(planned: Clear) -> Iterator[str]:
    for name, field in planned.fields.items():
        for index, is_written in zip(planned.global_indexes, field.written, strict=True):
            if is_written:
                yield cell_name(index, name)
