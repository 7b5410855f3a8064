"""What was freed goes back to the system within seconds, and steady work is left alone."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import memory
from tests.conftest import DEADLINE_S, ROOT, ServerProcess

from .service import Api

PAGE = 4096
PARTITIONS = 15
IS_GLIBC = memory._glibc() is not None
with_account = pytest.mark.skipif(not IS_GLIBC, reason="this C library gives no account of what is free")

# Blocks of one size, of which some stay: what lies between them is not at the end of the heap.
CHILD = """
from app import memory
def resident():
    return int(open("/proc/self/statm").read().split()[1])
memory.keep_large_blocks()
returning = memory.Returning(lambda: None)
assert not returning.look(), "nothing was freed yet"
before = resident()
blocks = [bytearray(b"x" * 100_000) for _ in range(600)]
peak = resident()
kept = blocks[::50]
del blocks
held = resident()
assert returning.look(), "much was freed"
after = resident()
assert not returning.look(), "and given back once"
print(before, peak, held, after)
"""


@with_account
def test_what_lies_between_blocks_that_stay_goes_back_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD], cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    before, peak, held, after = map(int, done.stdout.split())
    growth = peak - before
    assert growth > 600 * 100_000 // PAGE * 0.9
    assert held > peak - growth / 4, "by itself malloc gives little back, or this test shows nothing"
    assert after < before + growth / 2


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1])


@pytest.fixture
def own() -> Iterator[ServerProcess]:
    server = ServerProcess("--journal", "memory:")
    yield server
    assert server.stop() == 0


@with_account
def test_a_server_that_lost_most_partitions_gives_at_least_half_of_its_growth_back(own: ServerProcess) -> None:
    api, pid = Api(own.url), own.process.pid
    before = resident(pid)
    schema = {f"f{i}": {"dtype": "int64", "lengths": {"const": 7}} for i in range(28)}
    with api.http:
        for number in range(PARTITIONS):
            indexes = api.ok("POST", f"/v1/partitions/p{number}/samples", {"count": 10_000})["global_indexes"]
            body = {"global_indexes": indexes, "field_schema": schema}
            api.ok("POST", f"/v1/partitions/p{number}/production", body)
        half = (before + resident(pid)) / 2
        for number in range(1, PARTITIONS):
            api.ok("DELETE", f"/v1/partitions/p{number}")
    deadline = time.monotonic() + DEADLINE_S
    while resident(pid) > half:
        assert time.monotonic() < deadline
        time.sleep(0.05)  # it looks by a clock of its own


class Account:
    """Stands for the C library: so much is free; what is given back is counted."""

    def __init__(self) -> None:
        self.fordblks = 0
        self.trimmed = 0

    def mallinfo2(self) -> "Account":
        return self

    def malloc_trim(self, _: int) -> None:
        self.trimmed += 1


def test_only_what_is_much_more_than_was_left_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    account, much = Account(), memory.MUCH_BYTES
    monkeypatch.setattr(memory, "_glibc", lambda: account)
    returning = memory.Returning(lambda: None)
    told = []
    for free in (much, much + 1, 2 * much, 0, much, much + 1):
        account.fordblks = free
        told.append(returning.look())
    assert told == [False, True, False, False, False, True]
    assert account.trimmed == 2


def test_where_the_library_gives_no_account_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_glibc", lambda: None)
    returning = memory.Returning(lambda: None)
    returning.start()
    assert not returning._thread.is_alive()
    assert not returning.look()
    returning.end()
