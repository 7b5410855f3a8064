"""Dicts that hold a bounded number of entries: the oldest goes."""

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def put(entries: dict[K, V], key: K, value: V, most: int) -> None:
    """`key`, which has no entry, is the newest; beyond `most` entries the oldest goes."""
    entries[key] = value
    if len(entries) > most:
        del entries[next(iter(entries))]
