"""Refuses writes to samples that are cleared or clearing, by index and by key.

A cleared sample never comes back, and a write to it never reaches another one. A caller may ask to skip cleared
samples. A clearing one may come back, so writes to it are refused until its clear is committed or aborted.
"""

from collections.abc import Container, Sequence

import msgspec

from core.arrays import Ints
from core.errors import SampleCleared, SampleClearing, SampleNotFound
from core.state.rows import Rows


def check_indexes(rows: Rows, absent: Ints, next_index: int, skip: bool) -> None:
    """`absent` are not live here. Raises SampleNotFound, SampleCleared unless they are skipped, SampleClearing."""
    future = absent[absent >= next_index]
    if len(future):
        raise SampleNotFound(global_indexes=future.tolist())
    is_clearing = rows.locate_held(absent) > 0
    if not skip and not is_clearing.all():
        raise SampleCleared(global_indexes=absent[~is_clearing].tolist())
    if is_clearing.any():
        raise SampleClearing(global_indexes=absent[is_clearing].tolist())


def check_keys(rows: Rows, names: Sequence[bytes], skip: bool) -> None:
    """Keys (JSON strings) of a write. Raises SampleCleared for tombstones unless they are skipped, SampleClearing."""
    if rows.tombstones and not skip:
        _refuse(SampleCleared, names, rows.tombstones)
    if rows.clearing_names:
        _refuse(SampleClearing, names, rows.clearing_of(names))


def _refuse(error: type[SampleCleared | SampleClearing], names: Sequence[bytes], refused: Container[bytes]) -> None:
    keys = [msgspec.json.decode(name, type=str) for name in names if name in refused]
    if keys:
        raise error(keys=keys)
