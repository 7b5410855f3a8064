"""Frees the memory of a deleted partition, and that of many forgotten leases, in slices."""

from collections.abc import Iterator
from typing import Any

from core.arrays import Cells
from core.slices import Sliced

from .leases import Lease
from .partition import Partition
from .service import MANY_LEASES, ServiceState

AT_ONCE = 32_768  # cells or keys that are freed in one step


def free_all(state: ServiceState) -> Sliced[None]:
    """Free what is gone of the state, one after the other, for ever; one that is in work is still among them."""
    while True:
        while state.gone:
            gone = state.gone[0]
            yield from _freed(gone) if isinstance(gone, list) else _free(gone)
            del state.gone[0]
        yield


def _free(partition: Partition) -> Sliced[None]:
    """Empty the partition, which nothing refers to any more."""
    rows, groups = partition.rows, partition.groups
    for column in (rows.keys, partition.custom_meta, groups.ids):
        if column is not None:
            yield from _emptied(column)
    for names in (rows.by_key, rows.tombstones, groups.numbers):
        yield from _dropped(names)
    for field in partition.fields.values():
        field.backend.cells = None
        yield


def _freed(leases: list[Lease]) -> Iterator[None]:
    """Drop the leases, which nothing else refers to."""
    while leases:
        del leases[-MANY_LEASES:]
        yield


def _emptied(column: Cells) -> Iterator[None]:
    for first in range(0, len(column), AT_ONCE):
        column[first : first + AT_ONCE] = None
        yield


def _dropped(names: dict[bytes, Any]) -> Iterator[None]:
    while names:
        for _ in range(min(AT_ONCE, len(names))):
            names.popitem()
        yield
