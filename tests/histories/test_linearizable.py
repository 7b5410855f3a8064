"""Concurrent histories of real clients against a real server are linearizable, partition by partition; and what it
journaled keeps the laws of delivery. TEST_LONG=1: more histories, and the server is killed under them.

The chance is seeded and printed; what the operating system makes of it is another history each time.
"""

import os
import random
import threading
from pathlib import Path

import httpx
import pytest

from tests.conftest import ROOT, ServerProcess
from tests.histories.audit import audit_journal
from tests.histories.books import Broken
from tests.histories.clients import Client, Record, run_together, unanswered
from tests.histories.history import Operation, out_of_order
from tests.histories.search import linearize
from tests.histories.spec import State, step

LONG = os.environ.get("TEST_LONG") == "1"
SEED = int(os.environ.get("TEST_SEED", "7"))
CLIENTS, CALLS = 5, 11


def partition(url: str, number: int) -> Record:
    """A new partition whose samples may go out as often as anyone likes."""
    name = f"history-{number}"
    httpx.put(f"{url}/v1/partitions/{name}", json={"max_attempts": 10_000}).raise_for_status()
    return Record(name)


def clients(url: str, record: Record, seed: int, cut: int = 8) -> list[Client]:
    return [Client(url, record, random.Random(f"{seed}-{i}"), CALLS, cut) for i in range(CLIENTS)]


def check(record: Record, seed: int) -> None:
    history = record.history()
    verdict = linearize(history, step, State())
    assert verdict.order is not None, f"seed {seed}, {record.partition}: {verdict}"
    assert not out_of_order(history), out_of_order(history)


def overlapping(history: list[Operation]) -> int:
    """Pairs of operations that were on their way at once."""
    return sum(
        one.called < other.called < one.returned for one in history for other in history if one.number != other.number
    )


def test_histories_of_real_clients_are_linearizable(tmp_path: Path) -> None:
    server = ServerProcess("--journal", f"file://{tmp_path}/journal")
    cut, together = 0, 0
    try:
        for number in range(60 if LONG else 6):
            seed = SEED + number
            print(f"seed {seed}")  # noqa: T201  (the chance of this one again)
            record = partition(server.url, number)
            run_together(clients(server.url, record, seed))
            check(record, seed)
            cut, together = cut + unanswered(record.operations), together + overlapping(record.operations)
    finally:
        assert server.stop() == 0
    assert cut > 0
    assert together > CLIENTS * CALLS
    audit_journal(tmp_path / "journal")


@pytest.mark.skipif(not LONG, reason="the long form")
def test_histories_are_linearizable_though_the_server_is_killed(tmp_path: Path) -> None:
    journal = ("--journal", f"file://{tmp_path}/journal")
    server = ServerProcess(*journal)
    try:
        for number in range(6):
            seed = SEED + number
            print(f"seed {seed}")  # noqa: T201  (the chance of this one again)
            record, port = partition(server.url, number), int(server.url.rpartition(":")[2])
            team = clients(server.url, record, seed, cut=20)
            calling = threading.Thread(target=run_together, args=(team,))
            calling.start()
            while len(record.operations) < CLIENTS * CALLS // 2:
                calling.join(0.001)
            assert server.kill() < 0
            server = ServerProcess(*journal, port=port)
            calling.join()
            assert [client.failure for client in team] == [None] * CLIENTS
            check(record, seed)
    finally:
        status = server.stop() if server.process.poll() is None else None
    assert status == 0
    audit_journal(tmp_path / "journal")


# What a claim took stays on offer: the bug that the whole service exists to be without.
FORGETS = """
from core.state.partition import Partition

Partition.states_for = lambda self, name: None
"""


def test_a_server_that_hands_rows_out_twice_is_found_out(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(FORGETS)
    server = ServerProcess("--journal", f"file://{tmp_path}/journal", env={"PYTHONPATH": f"{tmp_path}:{ROOT}"})
    try:
        record = partition(server.url, 0)
        run_together(clients(server.url, record, SEED))
        verdict = linearize(record.history(), step, State())
    finally:
        server.stop()
    assert verdict.order is None
    assert len(verdict.furthest) < len(record.operations)
    with pytest.raises(Broken, match=r"cannot go from|is held by"):
        audit_journal(tmp_path / "journal")
