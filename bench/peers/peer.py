"""Our side of the pipe to a peer: one JSON object per line each way. The peer's own code runs only at the other end.

A peer is a whole tree of processes (TransferQueue has a controller, and could start Ray). All of it is in a session of
its own, so that Ctrl-C reaches only us, and all of it is gone when `close` returns.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import IO, Any, Literal, NamedTuple, Self, cast
from uuid import uuid4

from crew.processes import kill

from .venv import Log, PeerMissing, python_of

__all__ = ["Peer", "PeerFailed", "PeerMissing", "Rate", "Rated", "Timed"]

Timed = Literal["generate", "backend_meta", "encode", "request_to_bytes", "end_to_end"]
Rated = Literal["put", "claim"]
Answer = dict[str, Any]

NAME = "TransferQueue"
CHILD = Path(__file__).with_name("transferqueue.py")
# Every process of a peer inherits this variable: one that left the tree and the session is still found by it.
MARK = "BATCHMETA_BENCH_PEER"
ANSWER_S = 600.0
END_S = 5.0
POLL_S = 0.02
LOOK_S = 0.5
TAIL = 4096
NOTHING: Mapping[str, str] = MappingProxyType({})


class PeerFailed(Exception):
    """A peer did not do what it was asked, or died; the message is one line that says why."""


class Rate(NamedTuple):
    """How often a call was answered, and how many of them that was counted on."""

    calls_per_s: float
    calls: int


class Peer:
    """A running peer and its pipe. Every call but `close` raises PeerFailed."""

    def __init__(
        self, name: str, command: Sequence[str], answer_s: float = ANSWER_S, environment: Mapping[str, str] = NOTHING
    ) -> None:
        self.name = name
        self._answer_s = answer_s
        self._mark = f"{MARK}={uuid4().hex}"
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the process that writes to it
        self._process = subprocess.Popen(  # noqa: S603  # the commands are ours
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **environment, **dict([self._mark.split("=")])},
            start_new_session=True,
        )
        self._requests = cast(IO[bytes], self._process.stdin)
        self._answers = cast(IO[bytes], self._process.stdout)

    @classmethod
    def start(cls, version: str, log: Log) -> Self:
        """TransferQueue at `version`, in a venv that is made if need be. Raises PeerMissing."""
        # -I: nothing of the checkout or the caller's environment may be imported there, nor our own venv.py.
        command = [str(python_of(NAME, version, log)), "-I", str(CHILD)]
        peer = cls(f"{NAME} {version}", command)
        try:
            peer.versions()
        except PeerFailed as error:
            peer.close()
            raise PeerMissing(str(error)) from error
        except BaseException:
            peer.close()
            raise
        return peer

    def versions(self) -> dict[str, str]:
        """What is measured: the versions of Python and of the packages that matter, by name."""
        return dict(self._ask(do="versions")["versions"])

    def load(self, profile: Path, rows: int) -> None:
        """A fresh controller state that holds the first `rows` rows of the profile in the file."""
        self._ask(do="load", profile=str(profile.absolute()), rows=rows)

    def result(self, rows: int) -> Answer:
        """What it answers for the first `rows` rows, in the canonical form of transferqueue.py."""
        return self._ask(do="result", rows=rows)

    def time(self, case: Timed, rows: int, calls: int) -> list[float]:
        """Seconds of each of `calls` calls, after a few that are not counted."""
        return list(self._ask(do="time", case=case, rows=rows, calls=calls)["seconds"])

    def rate(self, case: Rated, seconds: float, at_once: int) -> Rate:
        """Call for `seconds`, with `at_once` calls in flight."""
        answer = self._ask(do="rate", case=case, seconds=seconds, at_once=at_once)
        return Rate(answer["calls_per_s"], answer["calls"])

    def close(self) -> None:
        """End the peer and everything it started; again does nothing."""
        try:
            with contextlib.suppress(OSError):
                self._requests.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(END_S)
        finally:
            self._kill()
            self._answers.close()
            self._errors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, **request: object) -> Answer:
        task = " ".join(str(request[name]) for name in ("do", "case") if name in request)
        line = self._exchange(json.dumps(request).encode() + b"\n", task)
        try:
            answer: Answer = json.loads(line)
        except ValueError:
            raise PeerFailed(f"{self.name} answered `{task}` with what is no JSON: {line[:80]!r}") from None
        if "error" in answer:
            raise PeerFailed(f"{self.name} could not do `{task}`: {answer['error']}")
        return answer

    def _exchange(self, request: bytes, task: str) -> bytes:
        answer = b""
        with contextlib.suppress(BrokenPipeError, ValueError):  # it died before this request, or is closed
            self._requests.write(request)
            self._requests.flush()
            if self._answers_in_time(task):
                answer = self._answers.readline()
        if not answer:
            raise PeerFailed(f"{self.name} died at `{task}` ({self._death()})")
        return answer

    def _answers_in_time(self, task: str) -> bool:
        """False if it died. Its end of the pipe may be held open by a process it left, so we look at it itself."""
        deadline = time.monotonic() + self._answer_s
        while time.monotonic() < deadline:
            is_over = self._process.poll() is not None
            # One answer to a request, so nothing is left in the reader's buffer and select sees all there is.
            if select.select([self._answers], [], [], 0 if is_over else LOOK_S)[0]:
                return True
            if is_over:
                return False
        self._kill()  # its answer to this request must not be taken for that to the next
        raise PeerFailed(f"{self.name} did not answer `{task}` in {self._answer_s:g} s")

    def _death(self) -> str:
        """How the child ended, and the last line of what it and its own wrote to stderr."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        said = b"" if self._errors.closed else _tail(self._errors.fileno())
        lines = said.decode(errors="replace").split("\n")
        words = [line.strip() for line in lines if line.strip()]
        return ", ".join([f"exit status {self._process.poll()}", *words[-1:]])

    def _kill(self) -> None:
        """SIGKILL to the child and all that descends from it, until none is left."""
        deadline = time.monotonic() + END_S
        while (pids := [*self._marked()]) and time.monotonic() < deadline:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(POLL_S)
        kill(self._process, END_S)

    def _marked(self) -> Iterator[int]:
        """The processes that inherited the mark; one that has ended and is not yet reaped has no environment."""
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self._mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                    yield int(folder.name)


def _tail(file: int) -> bytes:
    # pread: the child writes to the same open file, and a seek would move where it writes.
    size = os.fstat(file).st_size
    return os.pread(file, TAIL, max(size - TAIL, 0))
