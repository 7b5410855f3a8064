"""Runs the service: puts listener, journal, engine, executor and uvicorn together, and takes them down in order."""

import asyncio
import logging
import socket
import time
from contextlib import ExitStack, closing
from errno import EADDRNOTAVAIL
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FrameType

import uvicorn

from core.device import DeviceUnavailable, choose
from core.engine import Engine
from core.errors import Refused
from core.journal import FileJournal, Journal, journal_from_url
from core.journal.errors import JournalError
from core.runtime.executor import Executor
from core.runtime.replay import begin_with
from core.snapshot import checkpoint_file
from core.state.kept_replies import KeptReplies

from . import memory, scheduling
from .application import build, new_edge
from .own_samplers import load
from .settings import Settings
from .snapshots.compaction import Compaction
from .version import VERSION

_log = logging.getLogger("batchmeta")


class StartRefused(Exception):
    """What was asked for cannot be started; the message is one line that says why."""


class Server(uvicorn.Server):
    """uvicorn's server; it lets waiting calls go when asked to stop, and can be told to stop with a failure."""

    def __init__(self, config: uvicorn.Config, executor: Executor) -> None:
        super().__init__(config)
        self.failure: str | None = None
        self._executor = executor

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002  (the signature of a signal handler)
        """On SIGTERM and SIGINT: stop, and exit 0 (uvicorn's own would end by the signal). A second one is at once."""
        self._executor.stop_waiting()
        self.force_exit = self.should_exit
        self.should_exit = True

    def fail(self, reason: str) -> None:
        """The engine cannot go on: stop, and exit non-zero."""
        self.failure = reason
        self.should_exit = True


def serve(settings: Settings) -> int:
    """Run with these settings until told to stop; the exit status. Raises StartRefused."""
    try:
        device = choose(settings.device, _log.info)
        samplers = load(settings.sampler)
        listener, journal = _opened(settings)
    except (DeviceUnavailable, JournalError, Refused, OSError, ValueError) as error:
        raise StartRefused(str(error)) from error
    replies = KeptReplies(most_bytes=settings.kept_bytes)
    engine = Engine(time.monotonic, time.time, device, settings.max_cell_bytes, replies=replies)
    executor = Executor(engine, journal, lambda reason: server.fail(reason), lambda until: compaction.begin(until))
    folder = journal.path if isinstance(journal, FileJournal) else Path()
    compaction = Compaction(folder, executor.tidy, settings.kept_bytes)
    maker = compaction if isinstance(journal, FileJournal) else None
    edge = new_edge(executor, settings, device.name, journal.durability, time.time(), samplers, maker)
    app = build(executor, settings, edge, partial(_announce, settings, listener), compaction.end)
    config = uvicorn.Config(
        app,
        loop="uvloop" if _is_there("uvloop", "asyncio") else "asyncio",
        http=_protocol(),
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        date_header=False,
        timeout_graceful_shutdown=4,
        timeout_keep_alive=75,
    )
    server = Server(config, executor)
    memory.keep_large_blocks()
    memory.collect_rarely()
    memory.freeze()
    scheduling.share_the_interpreter()
    if settings.realtime and not scheduling.go_first():
        _log.info("the event loop has no real-time priority: not allowed here (CAP_SYS_NICE)")
    returning = memory.Returning(lambda: executor.reading.revision)
    returning.start()
    server.run(sockets=[listener])
    returning.end()
    return 1 if server.failure else 0


def _protocol() -> type[asyncio.Protocol] | str:
    """Ours, which stands on httptools; without that h11, whose connections uvicorn keeps in its own way."""
    if not _is_there("httptools", "h11"):
        return "h11"
    from .connection import Connection

    return Connection


def _is_there(module: str, instead: str) -> bool:
    """Whether it can be imported, which not every system and interpreter does; both are names of uvicorn's."""
    try:
        import_module(module)
    except ImportError as error:
        _log.info("%s instead of %s, which is slower: %s", instead, module, error)
        return False
    return True


def _opened(settings: Settings) -> tuple[socket.socket, Journal]:
    """The listener and the journal, both closed again if one of them cannot be."""
    saved = checkpoint_file.read(Path(settings.restore)) if settings.restore else None
    with ExitStack() as opened:
        listener = opened.enter_context(closing(_listen(settings)))
        journal = journal_from_url(settings.journal, Path.cwd(), _log.warning, settings.min_free_bytes)
        opened.enter_context(closing(journal))
        journal.open()
        if saved is not None:
            begin_with(journal, saved)
            _log.info("restored %s", settings.restore)
        opened.pop_all()
    return listener, journal


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    address = f"{settings.host}:{settings.port}"
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        another = "--host" if isinstance(error, socket.gaierror) or error.errno == EADDRNOTAVAIL else "--port"
        raise OSError(f"cannot listen on {address}: {error.strerror}; choose another {another}") from error
    listener.set_inheritable(True)
    return listener


def _announce(settings: Settings, listener: socket.socket) -> None:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    url = f"http://{host}:{listener.getsockname()[1]}"
    lines = [f"batchmeta {VERSION} at {url}", f"  API docs  {url}/docs", f"  journal   {settings.journal}"]
    if settings.journal == "memory:":
        lines[-1] += "  (nothing is kept: all is lost at a restart, indexes included)"
    print("\n".join(lines), flush=True)  # noqa: T201  (where it is, for the person who started it)
