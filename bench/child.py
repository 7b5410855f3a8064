"""Runs an object in a process of its own, so that a measurement shares no thread, heap or import with the rest.

The parent sends a verb with its arguments through a pipe and gets its result back. Either side ends when it closes.
"""

import gc
import os
import signal
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.forkserver import ensure_running
from types import TracebackType
from typing import Any

END_S = 5


def prepare() -> None:
    """Start to import the modules that children need, in the background."""
    _context()
    ensure_running()


def _context() -> ForkServerContext:
    # Forked from a process that did nothing but import: imports take long, and this process holds data.
    context = get_context("forkserver")
    context.set_forkserver_preload(["bench.cases"])
    return context


class ChildFailed(RuntimeError):
    """A child's call failed, or the child died; one line."""


class Child:
    """`make(*arguments)` in a new process. `do(verb, …)` calls that method there."""

    def __init__(self, make: Callable[..., object], *arguments: object) -> None:
        context = _context()
        self._line, theirs = context.Pipe()
        self.name = make.__name__
        self._process = context.Process(target=_live, args=(theirs, make, arguments), daemon=True, name=self.name)
        self._process.start()
        theirs.close()
        self._answer()

    def do(self, verb: str, *arguments: object) -> Any:
        """Call a method and wait for its result. Raises ChildFailed."""
        self.begin(verb, *arguments)
        return self._answer()

    def begin(self, verb: str, *arguments: object) -> None:
        """Call a method; `end` waits for it, so that several children can be at work at once."""
        self._line.send((verb, arguments))

    def end(self) -> Any:
        """The result of what was begun. Raises ChildFailed."""
        return self._answer()

    def close(self) -> None:
        """End the process, at work or not."""
        self._line.close()
        self._process.terminate()
        self._process.join(END_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()

    def __enter__(self) -> "Child":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _answer(self) -> Any:
        try:
            is_done, result = self._line.recv()
        except (EOFError, ConnectionError):
            raise ChildFailed(f"{self.name}: its process died") from None
        if not is_done:
            raise ChildFailed(f"{self.name}: {result}")
        return result


def _live(line: Connection, make: Callable[..., object], arguments: tuple[object, ...]) -> None:
    # Ctrl-C goes to the whole foreground group; the driver alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.freeze()  # what the bench imports is not for the collector of what is measured
    try:
        held = make(*arguments)
        line.send((True, None))
        while True:
            verb, given = line.recv()
            line.send((True, getattr(held, verb)(*given)))
    except (EOFError, ConnectionError):
        os._exit(1)
    except Exception as error:  # noqa: BLE001  (whatever it is, the driver tells it in one line)
        line.send((False, f"{type(error).__name__}: {error}".splitlines()[0]))
    os._exit(0)
