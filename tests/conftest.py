"""Fixtures for all: real servers as real processes, on free ports, ended by their process id."""

import atexit
import gc
import os
import re
import select
import signal
import ssl
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import httpx
import pytest

from tests.nursery import Forked, Nursery
from tests.timing import Timing, budget, turn

ROOT = Path(__file__).parent.parent
STORAGE = ("tests/crew/", "tests/demo/", "tests/crash/test_kill_in_demo.py")
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # or each client reads the system's certificates, for 60 to 90 ms
DEADLINE_S = 120  # an upper bound for a busy machine; nothing waits for it to pass


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # xdist's workers report to the process that counts
        config.pluginmanager.register(Timing(budget(config)))


def group(item: pytest.Item) -> str:
    """Side by side go files, not tests of one file, which share servers; and no two with a storage cluster."""
    path = str(item.path.relative_to(ROOT))
    return "storage" if path.startswith(STORAGE) else path


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: turn(group(item)))
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group(item)))


def pytest_collection_finish() -> None:
    """What was imported and collected lives until the end: without this each full collection walks through it again."""
    gc.collect()
    gc.freeze()


@cache
def nursery() -> Nursery:
    """The one of this process; it ends with it."""
    found = Nursery()
    atexit.register(found.close)
    return found


def started(*arguments: str, cwd: Path = ROOT, env: dict[str, str] | None = None) -> Forked:
    """`python -m app` with these arguments, from the nursery."""
    return nursery().start(list(arguments), str(cwd), {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})})


def refused_start(*arguments: str, env: dict[str, str] | None = None) -> tuple[int, list[str]]:
    """The exit status of a start that ends by itself, and the lines that it wrote of why."""
    process = started("--port", "0", *arguments, env=env)
    _, said = process.communicate(timeout=DEADLINE_S)
    return process.wait(), said.splitlines()


class ServerProcess:
    """A `python -m app` of our own. `url` once it is up; `stop` and `kill` end it."""

    def __init__(self, *arguments: str, cwd: Path = ROOT, env: dict[str, str] | None = None, port: int = 0) -> None:
        if "memory:" in arguments and "--checkpoints" not in arguments:
            arguments += ("--checkpoints", tempfile.mkdtemp())
        self.process = started("--port", str(port), *arguments, cwd=cwd, env=env)
        self.url = self._announced()
        self._until_ready()

    def _announced(self) -> str:
        ready, _, _ = select.select([self.process.stdout], [], [], DEADLINE_S)
        line = self.process.stdout.readline() if ready else ""
        match = re.search(r"http://\S+", line)
        if match is None:
            raise self._failed(f"the server did not start: {line!r}")
        return match[0]

    def _failed(self, what: str) -> RuntimeError:
        self.process.kill()
        return RuntimeError(f"{what} {self.process.communicate(timeout=DEADLINE_S)[1]}")

    def _until_ready(self) -> None:
        deadline = time.monotonic() + DEADLINE_S
        with httpx.Client(verify=NO_TLS) as client:
            while not self._is_ready(client):
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise self._failed("the server did not become ready")
                time.sleep(0.002)  # polls a real process, which needs the processor more than we do

    def _is_ready(self, client: httpx.Client) -> bool:
        try:
            return client.get(f"{self.url}/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self._wait()

    def kill(self) -> int:
        """SIGKILL; the exit status."""
        self.process.kill()
        return self._wait()

    def _wait(self) -> int:
        try:
            return self.process.wait(DEADLINE_S)
        finally:
            self.process.stdout.close()
            self.process.stderr.close()


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """A server with a memory: journal, shared by all tests that use names of their own."""
    server = ServerProcess("--journal", "memory:")
    yield server.url
    if server.process.poll() is None:
        assert server.stop() == 0
