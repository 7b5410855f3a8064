"""Programs that the demo starts and stops: ports, deadlines, the end of a log. Nothing of one program lives here."""

import contextlib
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

POLL_S = 0.05


class StartFailed(RuntimeError):
    """A program did not come up; the message has the end of its log."""


def free_port() -> int:
    """A port of 127.0.0.1 that was free a moment ago."""
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def launch(command: Sequence[str], folder: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start `command` in `folder`, its output in `log`; in a session of its own, so that Ctrl-C reaches only us."""
    with log.open("ab") as output:
        return subprocess.Popen(  # noqa: S603  # the commands are ours
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )


def wait_until(is_so: Callable[[], bool], deadline_s: float) -> bool:
    """Look every `POLL_S` seconds, until it is so (True) or the deadline is over (False)."""
    end = time.monotonic() + deadline_s
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(POLL_S)
    return True


def end(process: subprocess.Popen[bytes], deadline_s: float) -> int | None:
    """SIGTERM, and SIGKILL past the deadline; the exit status, as `kill` gives it."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(deadline_s)
    return kill(process, deadline_s)


def kill(process: subprocess.Popen[bytes], deadline_s: float) -> int | None:
    """SIGKILL; the exit status, or None where it cannot be had."""
    process.kill()
    # Not for ever: a Ctrl-C within Popen.poll may leave Popen's own lock held (CPython 3.11).
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(deadline_s)
    return None


def log_end(log: Path, lines: int = 15) -> str:
    """The last lines of a log, for the message of a failure."""
    if not log.exists():
        return ""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
