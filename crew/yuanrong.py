"""Storage on openYuanrong's key-value client (PyPI `openyuanrong-datasystem` 0.8.1), as its worker behaves on a CPU.

Its client holds Python's lock while it waits, so calling it from a thread would gain nothing: calls are made in place.
"""

import os
from collections.abc import Iterator, Mapping, Sequence

from .storage import MissingBytes, StorageAddress, StorageUnavailable

CONNECT_MS = 10_000
# The client takes fewer than 2,000 names in one call.
NAMES_PER_CALL = 1000


class YuanrongStorage:
    """A process's connection to the openYuanrong worker of the crew."""

    def __init__(self, address: StorageAddress) -> None:
        # The client library would write its logs to the home folder; it reads this when it is first used.
        os.environ["DATASYSTEM_CLIENT_LOG_DIR"] = str(address.folder / "client-logs")
        from yr.datasystem import KVClient  # type: ignore[import-untyped]  # it has no types

        # Over the connection that clients share by default, replies stay away when several processes call at once
        # (0.8.1 on two cores: single calls of 3 to 10 s, then RPC_RECV_TIMEOUT). Alone on a connection, none did.
        self._client = KVClient(
            address.host, address.port, connect_timeout_ms=CONNECT_MS, enable_exclusive_connection=True
        )
        try:
            self._client.init()
        except RuntimeError as error:
            raise StorageUnavailable(f"no openYuanrong worker at {address.host}:{address.port}: {error}") from error

    def put(self, values: Mapping[str, bytes]) -> None:
        for names in _parts(list(values)):
            failed = self._client.mset(names, [values[name] for name in names])
            if failed:
                raise StorageUnavailable(f"openYuanrong did not store {', '.join(failed[:5])}")

    def get(self, names: Sequence[str]) -> list[bytes]:
        found = [value for part in _parts(names) for value in self._get_part(part)]
        missing = [name for name, value in zip(names, found, strict=True) if value is None]
        if missing:
            raise MissingBytes(missing)
        return [value for value in found if value is not None]

    def _get_part(self, names: list[str]) -> list[bytes | None]:
        try:
            values: list[bytes | None] = self._client.get(names)
        except RuntimeError as error:
            # Where some are there, the others come back as None; where none is, the client raises.
            if "Key not found" not in str(error):
                raise
            return [None] * len(names)
        return values

    def delete(self, names: Sequence[str]) -> int:
        """`exist` first: the client's own delete does not tell what was there."""
        count = 0
        for part in _parts(names):
            held = [name for name, there in zip(part, self._client.exist(part), strict=True) if there]
            failed = self._client.delete(held) if held else []
            if failed:
                raise StorageUnavailable(f"openYuanrong did not delete {', '.join(failed[:5])}")
            count += len(held)
        return count


def _parts(names: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(names), NAMES_PER_CALL):
        yield list(names[start : start + NAMES_PER_CALL])
