"""Starts the service: settings, journal, engine, executor, server. `python -m app --help` lists the settings."""

import gc
import logging
import os
import socket
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import FrameType

import uvicorn

from core.device import DeviceUnavailable, choose
from core.engine import Engine
from core.executor import Executor
from core.journal import Journal, journal_from_url
from core.journal.errors import JournalError

from .application import build, new_edge
from .settings import Settings, SettingsRefused, load
from .version import VERSION

_log = logging.getLogger("batchmeta")


class Server(uvicorn.Server):
    """uvicorn's server; it lets waiting calls go when asked to stop, and can be told to stop with a failure."""

    executor: Executor
    failure: str | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002  (the signature of a signal handler)
        """On SIGTERM and SIGINT: stop, and exit 0 (uvicorn's own would end by the signal). A second one is at once."""
        self.executor.stop_waiting()
        self.force_exit = self.should_exit
        self.should_exit = True

    def fail(self, reason: str) -> None:
        """The engine cannot go on: stop, and exit non-zero."""
        self.failure = reason
        self.should_exit = True


def main(arguments: Sequence[str]) -> int:
    """Runs until told to stop; the exit status."""
    try:
        settings = load(arguments, os.environ)
        logging.basicConfig(level=settings.log_level.upper(), format="%(levelname)s %(message)s")
        return serve(settings)
    except (SettingsRefused, DeviceUnavailable, JournalError, OSError) as error:
        print(f"batchmeta: {error}", file=sys.stderr)  # noqa: T201  (one clear line is the contract of a failed start)
        return 2


def serve(settings: Settings) -> int:
    """Start with these settings. Raises what makes a start impossible."""
    device = choose(settings.device, _log.info)
    listener = _listen(settings)
    journal = _journal(settings)
    journal.open()
    engine = Engine(time.monotonic, time.time, device, settings.max_cell_bytes)
    server = Server.__new__(Server)
    server.executor = Executor(engine, journal, lambda reason: server.fail(reason))
    edge = new_edge(server.executor, settings, str(device), journal.durability, time.time())
    app = build(server.executor, settings, edge, partial(_announce, settings, listener))
    Server.__init__(
        server,
        uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=4,
            timeout_keep_alive=75,
            loop="uvloop",
            http="httptools",
        ),
    )
    gc.set_threshold(50_000, 20, 100)
    server.run(sockets=[listener])
    return 1 if server.failure else 0


def _journal(settings: Settings) -> Journal:
    try:
        return journal_from_url(settings.journal, Path.cwd(), log=_log.warning)
    except ValueError as error:
        raise SettingsRefused(str(error)) from error


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        raise OSError(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror}; choose another --port"
        ) from error
    listener.set_inheritable(True)
    return listener


def _announce(settings: Settings, listener: socket.socket) -> None:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    url = f"http://{host}:{listener.getsockname()[1]}"
    lines = [f"batchmeta {VERSION} at {url}", f"  API docs  {url}/docs", f"  journal   {settings.journal}"]
    if settings.journal == "memory:":
        lines[-1] += "  (nothing is kept: all is lost at a restart, indexes included)"
    print("\n".join(lines), flush=True)  # noqa: T201  (where it is, for the person who started it)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
