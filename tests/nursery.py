"""Starts many servers quickly: a process imports the service once, and starts each server as a fork of itself.

From there on it is what `python -m app` is, so that a test waits for no imports. No test lives
here; `python -m tests.nursery FD` is that process: it takes orders from a socket, until that is closed.
"""

import importlib
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, NoReturn

import numpy as np

ROOT = Path(__file__).parent.parent
MESSAGE = 1_000_000


class Forked:
    """A server as subprocess.Popen would have it."""

    def __init__(self, pid: int, status: int, stdout: int, stderr: int) -> None:
        self.pid, self._status = pid, status
        self.stdout: IO[str] = os.fdopen(stdout)
        self.stderr: IO[str] = os.fdopen(stderr)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit status, negative for a signal; None while it lives."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """Raises TimeoutExpired."""
        status = self._ended(timeout)
        if status is None:
            raise subprocess.TimeoutExpired("app", timeout or 0)
        return status

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            self.returncode = os.waitstatus_to_exitcode(int(os.read(self._status, 32)))
            os.close(self._status)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """All that it said, once it has ended. One that does not end is killed. Raises TimeoutExpired."""
        with self.stdout, self.stderr, ThreadPoolExecutor(2) as pool:
            said = [pool.submit(stream.read) for stream in (self.stdout, self.stderr)]
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
            out, err = (each.result() for each in said)
        return out, err

    def send_signal(self, number: int) -> None:
        """As long as it was not seen to have ended; it may end by itself in between, as for subprocess.Popen."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Nursery:
    """Where servers come from; there is one for each process that runs tests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", __name__, str(theirs.fileno())]
        self._process = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()])
        theirs.close()

    def start(self, arguments: list[str], cwd: str, environment: dict[str, str]) -> Forked:
        """A server, and both ends of what it says."""
        (out, their_out), (err, their_err), (status, their_status) = os.pipe(), os.pipe(), os.pipe()
        theirs = [their_out, their_err, their_status]
        with self._lock:
            socket.send_fds(self._orders, [json.dumps([arguments, cwd, environment]).encode()], theirs)
            pid = int(self._orders.recv(32))
        _close(theirs)
        return Forked(pid, status, out, err)

    def close(self) -> None:
        self._orders.close()
        self._process.wait()


def _become(order: bytes, fds: list[int]) -> NoReturn:
    """In the fork: everything as a new process would find it."""
    from app.__main__ import _end, main

    arguments, cwd, environment = json.loads(order)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(fds[0], 1)
    os.dup2(fds[1], 2)
    _close(fds)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [cwd, *environment.get("PYTHONPATH", "").split(os.pathsep)]
    sys.argv[1:] = arguments
    random.seed()
    np.random.seed()
    with suppress(ImportError):
        importlib.import_module("sitecustomize")  # as any new process does
    try:
        _end(main(arguments))
    except SystemExit as end:
        os._exit(end.code if isinstance(end.code, int) else 1)


def _serve(orders: socket.socket) -> None:
    import app.process  # once, for all of them

    app.memory.freeze()  # or each of them looks through all of it for what is garbage
    children: dict[int, tuple[int, int]] = {}  # by pidfd: pid, and where to tell of its end
    while True:
        for fd in select.select([orders, *children], [], [])[0]:
            if fd is not orders:
                _tell_of_the_end(fd, *children.pop(fd))
                continue
            order, fds, _, _ = socket.recv_fds(orders, MESSAGE, 3)
            if not order:
                return
            pid = os.fork()
            if pid == 0:
                _close([orders.detach(), *children, *(status for _, status in children.values())])
                _become(order, fds)
            children[os.pidfd_open(pid)] = (pid, fds[2])
            _close(fds[:2])
            orders.send(b"%d" % pid)


def _tell_of_the_end(pidfd: int, pid: int, status: int) -> None:
    with suppress(BrokenPipeError):  # nobody waits for it
        os.write(status, b"%d" % os.waitpid(pid, 0)[1])
    _close([pidfd, status])


def _close(fds: Iterable[int]) -> None:
    for fd in fds:
        os.close(fd)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
