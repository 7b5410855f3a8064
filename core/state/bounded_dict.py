"""Dicts with a bounded number of entries, which drop the oldest."""

from collections.abc import Callable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def put(entries: dict[K, V], key: K, value: V, most: int, on_dropped: Callable[[K], object] = lambda _: None) -> None:
    """Add the entry of a new key; beyond `most` entries drop the oldest, and call `on_dropped` with its key."""
    entries[key] = value
    if len(entries) > most:
        oldest = next(iter(entries))
        del entries[oldest]
        on_dropped(oldest)
