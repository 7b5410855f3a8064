"""Storage without openYuanrong: a process of its own holds the bytes in a dict, the others reach it by socket.

It ends with the process that started it, even if that one is killed: the pipe between the two closes.
"""

import contextlib
import secrets
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import AuthenticationError, get_context
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from .storage import MissingBytes, StorageAddress, StorageUnavailable

START_S = 30


class HeldBytes:
    """The dict and its lock: each connection is served by a thread."""

    def __init__(self) -> None:
        self._held: dict[str, bytes] = {}
        self._lock = Lock()

    def put(self, values: dict[str, bytes]) -> None:
        with self._lock:
            self._held.update(values)

    def get(self, names: list[str]) -> list[bytes | None]:
        with self._lock:
            return [self._held.get(name) for name in names]

    def delete(self, names: list[str]) -> int:
        with self._lock:
            return sum(self._held.pop(name, None) is not None for name in names)


def _answer(caller: Connection, held: HeldBytes) -> None:
    verbs: dict[str, Callable[[Any], Any]] = {"put": held.put, "get": held.get, "delete": held.delete}
    with contextlib.suppress(EOFError, OSError):  # the caller is gone, perhaps in the middle of a word
        while True:
            verb, argument = caller.recv()
            caller.send(verbs[verb](argument))


def _accept(listener: Listener) -> None:
    held = HeldBytes()
    while True:
        try:
            caller = listener.accept()
        except (AuthenticationError, EOFError, OSError):  # a caller that left while it was greeted
            continue
        Thread(target=_answer, args=(caller, held), daemon=True).start()


def _serve(parent: Connection, secret: bytes) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The backlog lets all processes of a crew connect at once.
    with Listener(("127.0.0.1", 0), backlog=128, authkey=secret) as listener:
        Thread(target=_accept, args=(listener,), daemon=True).start()
        parent.send(listener.address)
        parent.poll(None)


@contextmanager
def memory_storage(folder: Path) -> Iterator[StorageAddress]:
    """Run the process; `folder` is not used, as nothing is written to disk."""
    ours, theirs = get_context("spawn").Pipe()
    secret = secrets.token_bytes(16)
    process = get_context("spawn").Process(target=_serve, args=(theirs, secret), daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(START_S):
            raise StorageUnavailable(f"the memory storage did not start in {START_S} s")
        host, port = ours.recv()
        yield StorageAddress("memory", host, port, folder, secret)
    finally:
        ours.close()
        process.join(timeout=5)
        process.kill()


class MemoryStorage:
    """A process's connection to the memory storage."""

    def __init__(self, address: StorageAddress) -> None:
        self._server = Client((address.host, address.port), authkey=address.secret)

    def _ask(self, verb: str, argument: Mapping[str, bytes] | Sequence[str]) -> Any:
        self._server.send((verb, argument))
        return self._server.recv()

    def put(self, values: Mapping[str, bytes]) -> None:
        self._ask("put", dict(values))

    def get(self, names: Sequence[str]) -> list[bytes]:
        found: list[bytes | None] = self._ask("get", list(names))
        missing = [name for name, value in zip(names, found, strict=True) if value is None]
        if missing:
            raise MissingBytes(missing)
        return [value for value in found if value is not None]

    def delete(self, names: Sequence[str]) -> int:
        count: int = self._ask("delete", list(names))
        return count
