"""SIGSTOP and SIGCONT of a real server under load: calls wait and then go on, and nothing is lost.

What ran out of time meanwhile is as if it had run all along: a lease ended, its rows go out again; a longer one holds.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import ServerProcess

from .servers import Writer, acknowledged, journal, kept, running, until, writing

SHORT_S = 0.5
LEASED = "/v1/partitions/leased"


def produce(http: httpx.Client, keys: list[str], field: str) -> None:
    body = {"keys": keys, "create": True, "field_schema": {field: {"dtype": "int64", "shape": []}}}
    http.post(f"{LEASED}/production", json=body).raise_for_status()


def lease(http: httpx.Client, lease_s: float) -> Any:
    """One row, for that long; its key, and what an ack needs."""
    body = {"fields": ["n"], "batch_size": 1, "ack": "explicit", "lease_s": lease_s}
    reply = http.post(f"{LEASED}/tasks/t/claims", json=body).json()
    return reply["batch"]["keys"][0], f"/v1/claims/{reply['claim']['claim_id']}/ack", {"token": reply["claim"]["token"]}


@contextmanager
def stopped(server: ServerProcess) -> Iterator[None]:
    server.process.send_signal(signal.SIGSTOP)
    try:
        until(lambda: Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
        yield
    finally:
        os.kill(server.process.pid, signal.SIGCONT)


def test_a_server_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    with running(ServerProcess(*journal(tmp_path))) as server:
        writers = stop_and_go_on(server)
        assert server.stop() == 0
    assert kept(tmp_path) == acknowledged(writers)


def stop_and_go_on(server: ServerProcess) -> list[Writer]:
    with httpx.Client(base_url=server.url, timeout=70) as http, writing(server.url) as writers:
        produce(http, ["a", "b"], "n")
        long, short = lease(http, 600), lease(http, SHORT_S)
        late: list[httpx.Response] = []
        wanted = {"fields": ["late"], "batch_size": 1, "wait_s": 60}
        waiting = threading.Thread(
            target=lambda: late.append(httpx.post(f"{server.url}{LEASED}/tasks/late/claims", json=wanted, timeout=70))
        )
        waiting.start()
        with stopped(server), pytest.raises(httpx.ReadTimeout):
            httpx.get(f"{server.url}/healthz", timeout=2 * SHORT_S)  # a call waits; and the short lease's time passes
        before = acknowledged(writers)
        until(lambda: all(len(writer.acknowledged) > 5 + len(before) // len(writers) for writer in writers))
        assert {writer.end for writer in writers} == {""}, "none of the calls that waited was refused"
        until(lambda: http.get(f"{LEASED}/tasks/t/consumption?counts_only=true").json()["leased"] == 1)
        lost = http.post(short[1], json=short[2])
        assert (lost.status_code, lost.json()["code"]) == (409, "lease-lost")
        assert http.post(long[1], json=long[2]).json()["accepted"] == 1
        assert lease(http, 600)[0] == short[0] != long[0]
        produce(http, ["a"], "late")
        waiting.join(60)
        assert late[0].json()["batch"]["keys"] == ["a"]
    return writers
