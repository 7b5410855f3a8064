"""Servers by the hundred: a process that has imported the service once and starts each server by a fork of itself,
which is `python -m app` from there on. No test lives here; `python -m tests.crash.nursery` is that process.
"""

import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import httpx

from tests.conftest import DEADLINE_S, ROOT

SITE = Path(__file__).parent / "site"


class Nursery:
    """Where servers come from. Any thread may ask for one."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": f"{SITE}:{ROOT}"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._lock = threading.Lock()

    def start(self, arguments: list[str], environment: dict[str, str], said: Path) -> "Server":
        """A server that is ready; what it says goes to a file. Raises RuntimeError with all of it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps([arguments, environment, str(said)]).encode() + b"\n")
            self._process.stdin.flush()
            return Server(int(self._process.stdout.readline()), said)

    def close(self) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()


class Server:
    """One of them, by a descriptor, which never comes to mean another process as a pid may."""

    def __init__(self, pid: int, said: Path) -> None:
        try:
            self._fd = os.pidfd_open(pid)
        except ProcessLookupError:
            raise RuntimeError(said.read_text()) from None
        self._said = said

    def url(self) -> str:
        """Once it is ready. Raises RuntimeError."""
        deadline = time.monotonic() + DEADLINE_S
        with httpx.Client() as http:
            while self.is_alive() and time.monotonic() < deadline:
                found = re.search(r"http://\S+", self._said.read_text() if self._said.exists() else "")
                with suppress(httpx.TransportError):
                    if found and http.get(f"{found[0]}/readyz").status_code == 200:
                        return found[0]
                time.sleep(0.005)  # polls a real process
        raise RuntimeError(f"it did not become ready: {self._said.read_text()}")

    def is_alive(self) -> bool:
        return not select.select([self._fd], [], [], 0)[0]

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._fd, signal.SIGKILL)
        assert select.select([self._fd], [], [], DEADLINE_S)[0]

    def close(self) -> None:
        self.kill()
        os.close(self._fd)


def _become(arguments: list[str], environment: dict[str, str], said: str) -> None:
    from app.__main__ import _end, main
    from tests.crash.failpoints import SERVER, install

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    fd = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    os.environ.update({**environment, SERVER: str(os.getpid())})
    install(os.environ)
    _end(main(arguments))


def _serve() -> None:
    import app.process  # noqa: F401  (once, for all of them)

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who died
    while line := sys.stdin.readline():
        pid = os.fork()
        if pid == 0:
            _become(*json.loads(line))
        os.write(1, b"%d\n" % pid)


if __name__ == "__main__":
    _serve()
    os._exit(0)  # the interpreter's own way out takes seconds where torch is loaded
