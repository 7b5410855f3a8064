"""SIGKILL in the middle of everything, again and again on one folder: what was acknowledged is there, once, as it was
said; what was not is there whole or not at all; no index and no row is handed out twice.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from tests.conftest import DEADLINE_S, NO_TLS, ServerProcess

PATH = "/v1/partitions/p"
FIELDS = {"n": {"dtype": "int64", "lengths": [7]}, "o": {"kind": "object"}}
ROUNDS, WRITERS, ENOUGH = 2, 4, 40


class Worker(threading.Thread):
    """Calls until the server is gone, and keeps what was acknowledged."""

    def __init__(self, url: str, step: Callable[[httpx.Client, int], Any], first: int) -> None:
        super().__init__(daemon=True)
        self.url, self.step, self.at = url, step, first
        self.acknowledged: list[Any] = []

    def run(self) -> None:
        with httpx.Client(base_url=self.url, timeout=30, verify=NO_TLS) as http:
            try:
                while True:
                    self.acknowledged.append(self.step(http, self.at))
                    self.at += 1
            except httpx.TransportError:
                return


def writer(name: str) -> Callable[[httpx.Client, int], tuple[str, int]]:
    def step(http: httpx.Client, i: int) -> tuple[str, int]:
        key = f"{name}_{i}"
        body = {
            "keys": [key],
            "create": True,
            "field_schema": FIELDS,
            "backend_meta": {"n": [{"at": key}]},
            "custom_meta": [{"key": key}],
            "group_ids": [name],
        }
        reply = http.post(f"{PATH}/production", json=body)
        assert reply.status_code == 200, reply.text
        return key, reply.json()["global_indexes"][0]

    return step


def claimer(http: httpx.Client, _: int) -> list[int]:
    body = {"fields": ["n", "o"], "batch_size": 3, "min_batch_size": 1, "wait_s": 0.02}
    batch = http.post(f"{PATH}/tasks/t/claims", json=body).json()["batch"]
    indexes: list[int] = batch["global_indexes"]
    return indexes


class Account:
    """All that was ever acknowledged, over every life of the server."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.taken: list[int] = []

    def live_and_die(self, server: ServerProcess, first: int) -> None:
        """Writers and a claimer run until enough is acknowledged, then the process is killed under them."""
        writers = [Worker(server.url, writer(f"w{i}"), first) for i in range(WRITERS)]
        taker = Worker(server.url, claimer, 0)
        for worker in (*writers, taker):
            worker.start()
        deadline = time.monotonic() + DEADLINE_S
        while min(len(worker.acknowledged) for worker in writers) < ENOUGH:
            assert time.monotonic() < deadline
            time.sleep(0.01)  # polls real processes; the writers need this thread's turn
        assert server.kill() < 0
        for worker in (*writers, taker):
            worker.join(DEADLINE_S)
        self.rows |= dict(row for worker in writers for row in worker.acknowledged)
        self.taken += [index for batch in taker.acknowledged for index in batch]

    def check(self, url: str) -> None:
        with httpx.Client(base_url=url, timeout=30, verify=NO_TLS) as http:
            read = {
                "keys": list(self.rows),
                "include": ["keys", "custom_meta", "backend_meta", "group_ids"],
                "expand": True,
            }
            batch = http.post(f"{PATH}/batch-meta", json=read).json()
            status = http.get(f"{PATH}/tasks/t/consumption?limit=10000").json()
            listed = http.get(f"{PATH}/keys?limit=10000").json()["keys"]
        assert batch["missing_keys"] == []
        assert dict(zip(batch["keys"], batch["global_indexes"], strict=True)) == self.rows
        assert batch["is_ready"]
        assert batch["custom_meta"] == [{"key": key} for key in self.rows]
        assert batch["backend_meta"]["n"] == [{"at": key} for key in self.rows]
        assert batch["group_ids"] == [key.split("_")[0] for key in self.rows]
        consumed = dict(zip(status["global_indexes"], status["consumption_status"], strict=True))
        assert all(consumed[index] == 1 for index in self.taken)
        assert all(line["custom_meta"] == {"key": line["key"]} for line in listed), "a row that is there by half"
        assert len({line["global_index"] for line in listed}) == len(listed)


def test_kill_under_load_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    account = Account()
    journal = ("--journal", f"file://{tmp_path}/journal")
    server = ServerProcess(*journal)
    try:
        for life in range(ROUNDS):
            account.live_and_die(server, life * 100_000)
            server = ServerProcess(*journal)
            account.check(server.url)
    finally:
        status = server.stop() if server.process.poll() is None else None
    assert status == 0
    assert len(set(account.rows.values())) == len(account.rows) >= ROUNDS * WRITERS * ENOUGH
    assert len(set(account.taken)) == len(account.taken) > 0
