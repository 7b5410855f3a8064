"""The end of a step: every byte out of storage, every sample and partition out of the service.

What has to go is read from the service's backend meta, not from what we remember; the account then compares the two.
"""

from collections.abc import Iterator
from typing import Any

from .account import note
from .desk import Desk
from .storage import cell_name

CLEARING = "clear"


async def clear(desk: Desk, partition: str) -> None:
    """Delete the bytes first and the rows after them: so a crash between leaves rows that still name their bytes."""
    tally = desk.tally(CLEARING)
    cells = await tally.call(desk.client.read_backend_meta(partition))
    indexes = list(cells.global_indexes)
    tally.removed += desk.storage.delete(list(_written(cells)))
    deleted = await tally.call(desk.client.delete(partition, global_indexes=indexes))
    left = await tally.call(desk.client.delete_partition(partition))
    # Entered only when the service agrees on the number, so that a row it kept or lost shows in the account.
    if deleted.cleared == len(indexes) and left.cleared_samples == 0:
        note(tally.deleted, partition, indexes)
    desk.advance(CLEARING, len(indexes))


def _written(cells: Any) -> Iterator[str]:
    for name, column in cells.backend_meta.items():
        for index, cell in zip(cells.global_indexes, column, strict=True):
            if cell is not None:
                yield cell_name(index, name)
