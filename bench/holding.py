"""The real service, which also tells how long its engine's thread was held.

    python -m bench.holding PORT_FILE -- <flags of the service>

It writes a port into the file. Whoever connects to that port reads the longest hold in seconds since the last reading.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from app import process
from app.settings import SettingsRefused, load

from .server import HOST, Server, server

PORT_FILE = "hold.port"


@contextmanager
def holding(folder: Path) -> Iterator[Server]:
    """Such a service, which keeps all in memory; `longest_hold_s(folder)` asks it."""
    module = ("bench.holding", str(folder.absolute() / PORT_FILE), "--")
    with server(folder, (*module, "--checkpoints", str(folder.absolute() / "checkpoints")), in_memory=True) as ours:
        yield ours


def longest_hold_s(folder: Path) -> float:
    """The longest time, in seconds, for which one thing held the engine's thread, since this was last asked."""
    port = int((folder / PORT_FILE).read_text())
    with socket.create_connection((HOST, port)) as line:
        return float(line.recv(100))


def serve(port_file: Path, flags: Sequence[str]) -> int:
    """The service as `python -m app` runs it, and the port beside it. Raises SettingsRefused, StartRefused."""

    beside = socket.create_server((HOST, 0))
    port_file.write_text(str(beside.getsockname()[1]))

    class Telling(process.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await asyncio.start_server(self._tell, sock=beside)
            await super().startup(sockets=sockets)

        async def _tell(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(repr(self._executor.longest_hold_s()).encode())
            writer.close()

    process.Server = Telling  # type: ignore[misc]  # the one seam: the loop is made inside
    return process.serve(load(flags, os.environ))


def main(arguments: Sequence[str]) -> int:
    """The service's exit status; 2 where it could not start."""
    try:
        return serve(Path(arguments[0]), arguments[2:])
    except (SettingsRefused, process.StartRefused) as error:
        sys.stderr.write(f"bench.holding: {error}\n")
        return 2


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(status)  # the interpreter's own way out takes seconds where torch is loaded
