"""Writes a checkpoint in a copy of this process (fork), where the state stays as it is at that moment.

For a journal that no other process can read. The engine's thread is held while the system copies the page tables, 17 to
20 ms a GB. In the copy is no thread but that one: it runs plain Python, and ends at once when it is done.
"""

import gc
import os
import signal
import sys
import warnings
from dataclasses import dataclass
from typing import NoReturn

from core.device import CPU
from core.engine import Engine
from core.errors import JournalUnavailable, Refused
from core.journal.contract import BEFORE_FIRST
from core.snapshot.checkpoint_folder import CheckpointFolder, CheckpointRequest
from core.snapshot.image import image


@dataclass(frozen=True, slots=True)
class CopiedProcess:
    """`told`: a descriptor from which to read why there is no checkpoint, until the process ends."""

    pid: int
    told: int


def can_copy(engine: Engine) -> bool:
    """Whether the state may be used in a copy: what is on another device is not there, nor are torch's threads."""
    return sys.platform == "linux" and engine.device is CPU


def begin(engine: Engine, folder: CheckpointFolder, order: CheckpointRequest) -> CopiedProcess:
    """An operation: the state at its place in the order. Raises JournalUnavailable where there is no memory for it."""
    reader, writer = os.pipe()
    try:
        pid = _fork()
    except OSError as error:
        os.close(reader)
        os.close(writer)
        raise JournalUnavailable(f"no process for a checkpoint: {error.strerror}; free some memory") from error
    if pid == 0:
        _write(engine, folder, order, writer)
    os.close(writer)
    return CopiedProcess(pid, reader)


def wait_for(copy: CopiedProcess) -> None:
    """Until the checkpoint is there. Raises JournalUnavailable."""
    with os.fdopen(copy.told, "rb") as told:
        reason = told.read().decode(errors="replace")
    status = os.waitstatus_to_exitcode(os.waitpid(copy.pid, 0)[1])
    if status != 0:
        raise JournalUnavailable(reason or f"the process that wrote the checkpoint ended with status {status}")


def _fork() -> int:
    with warnings.catch_warnings():  # from Python 3.12 on it warns where there are threads, see the first lines
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _write(engine: Engine, folder: CheckpointFolder, order: CheckpointRequest, writer: int) -> NoReturn:
    status = 1
    try:
        _let_go(writer)
        folder.save(order, BEFORE_FIRST, engine.revision, image(engine))
        status = 0
    except Refused as error:
        os.write(writer, str(error).encode())
    finally:
        os._exit(status)


def _let_go(writer: int) -> None:
    """Of what the process had: its sockets, so that a new one can be on its port; its signals; its collector."""
    gc.disable()  # it would touch, and so copy, all there is
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    os.closerange(3, writer)
    os.closerange(writer + 1, os.sysconf("SC_OPEN_MAX"))
