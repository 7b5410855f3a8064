"""Where the bytes go: one small protocol, `put`, `get` and `delete`, and how a process finds its storage.

Names are `{global_index}@{field}`. The implementations are `yuanrong.py`, `files.py` and `memory.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

StorageName = Literal["yuanrong", "files", "memory"]


class MissingBytes(LookupError):
    """Storage holds nothing under these names."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"storage holds nothing under {', '.join(names[:5])} ({len(names)} names)")
        self.names = tuple(names)


class StorageUnavailable(RuntimeError):
    """The storage cannot be started or reached here; the message says what to do."""


class Storage(Protocol):
    """What a crew needs of a storage backend. Calls block for a few milliseconds."""

    def put(self, values: Mapping[str, bytes]) -> None:
        """Store each value under its name; a name that exists is overwritten."""

    def get(self, names: Sequence[str]) -> list[bytes]:
        """The values in the order of `names`. Raises MissingBytes that names every one not there."""

    def delete(self, names: Sequence[str]) -> int:
        """Remove what lies under `names`; how many of them were there."""


@dataclass(frozen=True, slots=True)
class StorageAddress:
    """How a process reaches the storage: it travels to each of them when it starts."""

    storage: StorageName
    host: str
    port: int
    folder: Path
    secret: bytes = b""

    def __str__(self) -> str:
        return f"{self.storage} at {self.host}:{self.port}" if self.port else f"{self.storage} in {self.folder}"


def cell_name(global_index: int, field: str) -> str:
    """The name of one cell's bytes."""
    return f"{global_index}@{field}"


def connect(address: StorageAddress) -> Storage:
    """A client of the storage at `address`; the modules are imported late, as openYuanrong may not be installed."""
    if address.storage == "memory":
        from .memory import MemoryStorage

        return MemoryStorage(address)
    if address.storage == "files":
        from .files import FilesStorage

        return FilesStorage(address)
    from .yuanrong import YuanrongStorage

    return YuanrongStorage(address)
