"""A real openYuanrong worker for the length of one run: started and stopped with `dscli`, in a scratch folder."""

import contextlib
import importlib.util
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .processes import POLL_S, end, free_port, launch, log_end, wait_until
from .storage import StorageAddress, StorageUnavailable

HOST = "127.0.0.1"
START_S = 60
STOP_S = 20
# The step of the demo needs about 60 MiB on average; memory is taken from the system as it is filled.
MEMORY_MB = 1024
NOT_INSTALLED = (
    "openYuanrong is not installed here (openyuanrong-datasystem 0.8.1 is for CPython 3.11 on x86-64 Linux, "
    "glibc 2.34 or newer): install the extra `demo`, or run with --storage memory"
)


@contextmanager
def yuanrong_storage(folder: Path) -> Iterator[StorageAddress]:
    """Run a worker whose data and logs lie in `folder`. Raises StorageUnavailable."""
    if importlib.util.find_spec("yr") is None:
        raise StorageUnavailable(NOT_INSTALLED)
    folder.mkdir(parents=True, exist_ok=True)
    worker = _Worker(folder, free_port())
    try:
        worker.start()
        yield StorageAddress("yuanrong", HOST, worker.port, folder)
    finally:
        worker.stop()


class _Worker:
    """`dscli start` leaves the worker behind as a process of its own, so we keep its id to be sure of its end."""

    def __init__(self, folder: Path, port: int) -> None:
        self.port = port
        self._folder = folder
        self._address = f"{HOST}:{port}"
        self._log = folder / "dscli.log"
        self._dscli = str(Path(sys.executable).with_name("dscli"))

    def start(self) -> None:
        arguments = {
            "worker_address": self._address,
            "metastore_address": f"{HOST}:{free_port()}",
            "start_metastore_service": "true",
            "arena_per_tenant": "1",
            "shared_memory_size_mb": str(MEMORY_MB),
        }
        flags = [word for name, value in arguments.items() for word in (f"--{name}", value)]
        command = [self._dscli, "start", "-t", str(START_S), "-d", str(self._folder), "-w", *flags]
        starter = launch(command, self._folder, self._log)
        try:
            ended = wait_until(lambda: starter.poll() is not None, START_S + 5)
        finally:
            end(starter, 5)
        if not ended or starter.returncode != 0:
            raise StorageUnavailable(
                f"openYuanrong did not start; --storage memory does without it\n{log_end(self._log)}"
            )

    def stop(self) -> None:
        """`dscli stop` needs `pgrep`, and waits for minutes where nobody reaps the worker; so we watch it ourselves."""
        pid = self._pid()
        if pid is None:
            return
        stopper = launch([self._dscli, "stop", "-w", self._address], self._folder, self._log)
        wait_until(lambda: stopper.poll() is not None or not self._runs(pid), STOP_S)
        if stopper.poll() not in (None, 0):
            self._signal(pid, signal.SIGTERM)
        if not wait_until(lambda: not self._runs(pid), STOP_S):
            self._signal(pid, signal.SIGKILL)
        end(stopper, POLL_S)

    def _pid(self) -> int | None:
        found = re.search(r"worker service with PID: (\d+)", log_end(self._log))
        return int(found[1]) if found else None

    def _runs(self, pid: int) -> bool:
        """Whether `pid` is this worker; one that has ended and is not yet reaped has no command line."""
        with contextlib.suppress(OSError):
            return f"--worker_address={self._address}".encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
        return False

    def _signal(self, pid: int, number: signal.Signals) -> None:
        if self._runs(pid):
            os.kill(pid, number)
