"""Dicts that hold a bounded number of entries: the oldest goes."""

from collections.abc import Callable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def put(entries: dict[K, V], key: K, value: V, most: int, on_dropped: Callable[[K], object] = lambda _: None) -> None:
    """`key`, which has no entry, is the newest; beyond `most` entries the oldest goes, and `on_dropped` hears of it."""
    entries[key] = value
    if len(entries) > most:
        oldest = next(iter(entries))
        del entries[oldest]
        on_dropped(oldest)
