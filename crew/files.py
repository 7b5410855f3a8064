"""Storage in a folder: each value is a file `{name}.safetensors`, which every process of this machine can read."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from .storage import MissingBytes, StorageAddress

SUFFIX = ".safetensors"


@contextmanager
def files_storage(folder: Path) -> Iterator[StorageAddress]:
    """Make the folder. What lies there outlives the processes, so that a resumed run finds it."""
    folder.mkdir(parents=True, exist_ok=True)
    yield StorageAddress("files", "", 0, folder)


class FilesStorage:
    """A process's way to the folder."""

    def __init__(self, address: StorageAddress) -> None:
        self._folder = address.folder

    def put(self, values: Mapping[str, bytes]) -> None:
        for name, value in values.items():
            path = self._path(name)
            # Under another name first: a value that is put again is whole at any moment for who reads it.
            unfinished = path.with_suffix(f".{os.getpid()}")
            unfinished.write_bytes(value)
            unfinished.replace(path)

    def get(self, names: Sequence[str]) -> list[bytes]:
        found = [self._read(name) for name in names]
        missing = [name for name, value in zip(names, found, strict=True) if value is None]
        if missing:
            raise MissingBytes(missing)
        return [value for value in found if value is not None]

    def delete(self, names: Sequence[str]) -> int:
        count = 0
        for name in names:
            try:
                self._path(name).unlink()
            except FileNotFoundError:
                continue
            count += 1
        return count

    def _read(self, name: str) -> bytes | None:
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError:
            return None

    def _path(self, name: str) -> Path:
        return self._folder / (quote(name, safe="@") + SUFFIX)
