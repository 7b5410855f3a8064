"""Clients that call a real server at once, each in a thread of its own, and record their calls and the answers.

Some calls are cut: the connection is closed once the request is sent. Under an Idempotency-Key such a call is sent
again until it is answered, and is one operation; without one its outcome is unknown. The server may be killed under it.
"""

import random
import socket
import threading
import time
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.conftest import DEADLINE_S, NO_TLS
from tests.histories import requests
from tests.histories.history import UNKNOWN, Operation
from tests.histories.requests import Held, Request
from tests.histories.spec import FATES

KEYS = tuple(f"k{i}" for i in range(6))
TASKS = ("t", "u")


@dataclass
class Record:
    """The history of one partition, as it is written down by all its clients."""

    partition: str
    operations: list[Operation] = field(default_factory=list)
    numbers: Any = field(default_factory=count)

    def history(self) -> list[Operation]:
        """In the order of their calls."""
        return sorted(self.operations, key=lambda operation: operation.called)


class Client(threading.Thread):
    """Makes `calls` calls, drawn from `chance`, of which one in `cut` is cut."""

    def __init__(self, url: str, record: Record, chance: random.Random, calls: int, cut: int = 8) -> None:
        super().__init__(daemon=True)
        self.url, self.record, self.chance, self.calls, self.cut = url, record, chance, calls, cut
        self.held: list[Held] = []
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            with httpx.Client(base_url=self.url, timeout=DEADLINE_S, verify=NO_TLS) as http:
                for _ in range(self.calls):
                    self._call(http, draw(self.chance, self.record.partition, self.held))
        except BaseException as error:  # noqa: BLE001  (told to whoever joins)
            self.failure = error

    def _call(self, http: httpx.Client, request: Request) -> None:
        number, called = next(self.record.numbers), time.monotonic()
        is_cut, is_keyed = self.chance.randrange(self.cut) == 0, self.chance.randrange(2) == 0
        headers = {"Idempotency-Key": f"{self.record.partition}-{number}"} if is_keyed else {}
        if is_cut:
            self._send_and_leave(request, headers)
        reply = self._answer(http, request, headers) if is_keyed or not is_cut else None
        if reply is None:
            self.record.operations.append(Operation(number, request.name, request.arguments, called))
            return
        returned, body = time.monotonic(), reply.json()
        answer = request.answer(reply.status_code, body)
        self.record.operations.append(
            Operation(number, request.name, request.arguments, called, returned, answer, body.get("revision"))
        )
        if request.name == "claim" and (held := requests.held(number, body)):
            self.held.append(held)

    def _answer(self, http: httpx.Client, request: Request, headers: dict[str, str]) -> httpx.Response | None:
        """The reply; with a key it is asked for until it comes, without one None is its outcome, unknown."""
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            try:
                reply = http.request(request.method, request.path, content=request.content, headers=_json(headers))
            except httpx.TransportError:
                if not headers:
                    return None
                time.sleep(0.02)  # a real process is starting again
                continue
            code = reply.json().get("code")
            if code == "not-ready" or code == "idempotency-in-flight":
                time.sleep(0.002)
                continue
            return reply
        raise AssertionError(f"no answer to {request}")

    def _send_and_leave(self, request: Request, headers: dict[str, str]) -> None:
        address = urlsplit(self.url)
        lines = [f"{request.method} {request.path} HTTP/1.1", "Host: localhost"]
        lines += [f"{name}: {value}" for name, value in _json(headers).items()]
        head = "\r\n".join([*lines, f"Content-Length: {len(request.content)}", "", ""]).encode()
        try:
            with socket.create_connection((address.hostname or "", address.port or 0), DEADLINE_S) as connection:
                connection.sendall(head + request.content)
        except OSError:
            pass  # the server was killed: it may have come to it or not


def _json(headers: dict[str, str]) -> dict[str, str]:
    return {**headers, "Content-Type": "application/json"}


def draw(chance: random.Random, partition: str, held: list[Held]) -> Request:
    """The next call of a client that holds these claims."""
    keys = tuple(chance.sample(KEYS, chance.randint(1, 3)))
    task = chance.choice(TASKS)
    what = chance.choices(
        ["produce", "insert", "claim", "ack", "delete", "counts", "read", "reset"], [6, 1, 7, 5, 2, 2, 2, 1]
    )[0]
    if what == "ack" and held:
        return _ack(chance, chance.choice(held[-3:]))
    if what in ("claim", "ack"):
        most = chance.randint(1, 3)
        return requests.claim(partition, task, most, chance.randint(1, most), chance.random() < 0.7)
    if what in ("produce", "insert"):
        return requests.write(what, partition, keys)
    rows = {"delete": requests.delete, "read": requests.read}
    return rows[what](partition, keys) if what in rows else getattr(requests, what)(partition, task)


def _ack(chance: random.Random, held: Held) -> Request:
    fates = [chance.choice([*FATES, "accepted", ""]) for _ in held.rows]
    return requests.ack(held, tuple((key, fate) for key, fate in zip(held.rows, fates, strict=True) if fate))


def run_together(clients: list[Client]) -> None:
    """Start them at once and wait for the last. Raises what any of them raised."""
    for client in clients:
        client.start()
    for client in clients:
        client.join(DEADLINE_S)
        assert not client.is_alive()
        if client.failure is not None:
            raise client.failure


def unanswered(history: list[Operation]) -> int:
    return sum(operation.answer is UNKNOWN for operation in history)
