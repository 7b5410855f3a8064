"""Real servers under faults: who writes to them, how they end, and what their folder then holds. No test lives here."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx

from core.journal import FileJournal
from core.runtime.replay import replay
from tests.conftest import DEADLINE_S, NO_TLS, ROOT, ServerProcess
from tests.core.world import MANY, new_engine

PATH = "/v1/partitions/p"
FAILING = Path(__file__).parent / "failing"
LOST = "lost"


def journal(folder: Path) -> tuple[str, str]:
    return ("--journal", f"file://{folder}/journal")


def failing(folder: Path, *arguments: str, **more: str) -> ServerProcess:
    """A server with its journal in `folder`, whose disk fails once `told`."""
    env = {"PYTHONPATH": f"{FAILING}:{ROOT}", "TEST_FAULT": str(folder / "fault"), **more}
    return ServerProcess(*journal(folder), *arguments, env=env)


@contextmanager
def running(server: ServerProcess) -> Iterator[ServerProcess]:
    """A test that fails leaves no process."""
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.kill()


def tell(folder: Path, fault: str | None) -> None:
    """Make the disk of that server fail in this way from now on; None: no more. The order is written atomically."""
    if fault is None:
        (folder / "fault").write_text("nothing")  # not removed between a look and a read
        return
    aside = folder / "fault.new"
    aside.write_text(fault)
    aside.rename(folder / "fault")


def until(what: Callable[[], Any], why: str = "") -> None:
    """Polls real processes; how long they take is not ours to say."""
    deadline = time.monotonic() + DEADLINE_S
    while not what():
        assert time.monotonic() < deadline, why
        time.sleep(0.005)


def ended(server: ServerProcess) -> tuple[int, list[str]]:
    """The exit status of a server that ends by itself, and the lines that it said of it."""
    _, said = server.process.communicate(timeout=DEADLINE_S)
    return server.process.returncode, said.splitlines()


def insert(http: httpx.Client, key: str) -> httpx.Response:
    return http.post(f"{PATH}/samples", json={"keys": [key]})


class Writer(threading.Thread):
    """Inserts keys, one after the other, until it is refused or told to stop; `acknowledged` has their indexes."""

    def __init__(self, url: str, name: str) -> None:
        super().__init__(daemon=True)
        self.url, self.prefix = url, name
        self.acknowledged: dict[str, int] = {}
        self.stopping = False
        self.end: str = ""

    def run(self) -> None:
        with httpx.Client(base_url=self.url, timeout=DEADLINE_S, verify=NO_TLS) as http:
            while not self.stopping:
                key = f"{self.prefix}_{len(self.acknowledged)}"
                try:
                    reply = insert(http, key)
                except httpx.TransportError:
                    self.end = LOST
                    return
                if reply.status_code != 201:
                    self.end = f"{reply.status_code} {reply.json()['code']}"
                    return
                self.acknowledged[key] = reply.json()["global_indexes"][0]


@contextmanager
def writing(url: str, count: int = 4, name: str = "w") -> Iterator[list[Writer]]:
    """That many writers, once each of them was answered; in the end they stop."""
    writers = [Writer(url, f"{name}{number}") for number in range(count)]
    for writer in writers:
        writer.start()
    try:
        until(lambda: all(len(writer.acknowledged) > 5 for writer in writers))
        yield writers
    finally:
        for writer in writers:
            writer.stopping = True
        for writer in writers:
            writer.join(DEADLINE_S)


def acknowledged(writers: list[Writer]) -> dict[str, int]:
    return {key: index for writer in writers for key, index in writer.acknowledged.items()}


def kept(folder: Path, partition: str = "p") -> dict[str, int]:
    """Keys and indexes in the journal of a server that has ended: what its next start will have."""
    engine = new_engine()
    with closing(FileJournal(folder / "journal", log=lambda _: None)) as opened:
        opened.open()
        replay(engine, opened)
    found = engine.partitions[partition]
    rows = found.rows.after(-1, MANY)
    keys = [json.loads(key) for key in found.keys_of(rows)]
    return dict(zip(keys, found.rows.global_index[rows].tolist(), strict=True))
