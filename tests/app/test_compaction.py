"""A real server whose journal grows: snapshots are made beside it, old segments go, and it comes back as it was.

TEST_LONG=1: segments are as long as a server's; else they are a sixteenth of that.
"""

import os
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.__main__ import main
from tests.conftest import DEADLINE_S, ROOT, ServerProcess
from tests.crash.lives import SITE

LONG = os.environ.get("TEST_LONG") == "1"
ROWS, CELL = 65_536 if LONG else 4_096, "x" * 1000  # each call fills a segment
SMALL = {"PYTHONPATH": f"{SITE}:{ROOT}", "FAILPOINT_SEGMENT_BYTES": str(4 * 2**20)}
CALLS, KEPT = 4, 1
FIRST = f"{1:020d}.segment"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("grown") / "journal"


def server(folder: Path) -> ServerProcess:
    return ServerProcess("--journal", f"file://{folder}", env={} if LONG else SMALL)


def names(folder: Path, ending: str) -> list[str]:
    return sorted(path.name for path in folder.glob(f"*.{ending}"))


def wait_for(what: Any) -> None:
    """A process of its own is at work: how long it takes is not ours to say."""
    deadline = time.monotonic() + DEADLINE_S * 6
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def state(url: str) -> list[Any]:
    with httpx.Client(base_url=url, timeout=60) as http:
        found = [http.get("/v1/partitions").json()]
        for partition in found[0]["partitions"]:
            found.append(http.get(f"/v1/partitions/{partition['partition_id']}").json())
            found.append(http.get(f"/v1/partitions/{partition['partition_id']}/batch-meta?limit=100").json())
        return found


@pytest.fixture(scope="module")
def grown(folder: Path) -> list[Any]:
    """Four segments were written and mostly deleted again; what is there in the end."""
    service = server(folder)
    try:
        with httpx.Client(base_url=service.url, timeout=120) as http:
            for number in range(CALLS):
                body = {"count": ROWS, "custom_meta": {"const": {"text": CELL, "n": number}}}
                assert http.post(f"/v1/partitions/p{number}/samples", json=body).status_code == 201
                if number != KEPT:
                    assert http.delete(f"/v1/partitions/p{number}").json()["cleared_samples"] == ROWS
        wait_for(lambda: len(names(folder, "snapshot")) == 2 and names(folder, "segment")[0] != FIRST)
        found = state(service.url)
    finally:
        service.kill()
    return found


def test_what_snapshots_hold_is_let_go_and_the_state_comes_back(folder: Path, grown: list[Any]) -> None:
    assert names(folder, "segment")[0] > FIRST
    again = server(folder)
    try:
        assert state(again.url) == grown
    finally:
        assert again.stop() == 0


def verified(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    status = main(["--verify", "--journal", f"file://{folder}"])
    said = capsys.readouterr()
    return status, said.out + said.err


def test_what_a_kill_left_of_older_snapshots_goes_at_the_next_start(folder: Path, grown: list[Any]) -> None:
    left = folder / f"{0:020d}.snapshot"
    left.write_bytes((folder / names(folder, "snapshot")[0]).read_bytes())
    service = server(folder)
    try:
        wait_for(lambda: not left.exists())
        assert len(names(folder, "snapshot")) == 2
    finally:
        service.kill()


def test_it_verifies(folder: Path, grown: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    status, said = verified(folder, capsys)
    assert (status, f"1 partitions, {ROWS} samples" in said) == (0, True)


def test_a_damaged_snapshot_stops_the_start_and_says_what_to_do(
    folder: Path, grown: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    newest = folder / names(folder, "snapshot")[-1]
    aside, whole = folder.parent / "aside", newest.read_bytes()
    newest.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    status, said = verified(folder, capsys)
    newest.rename(aside)
    as_it_was_told, _ = verified(folder, capsys)
    aside.rename(newest)
    newest.write_bytes(whole)
    assert (status, as_it_was_told) == (1, 0)
    assert str(newest) in said
    assert "the snapshot before it and the journal hold the same" in said


def test_without_its_snapshots_it_does_not_start_with_less(
    folder: Path, grown: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    away = [(folder / name, folder.parent / name) for name in names(folder, "snapshot")]
    for there, aside in away:
        there.rename(aside)
    status, said = verified(folder, capsys)
    for there, aside in away:
        aside.rename(there)
    assert (status, "put the snapshots back" in said) == (1, True)
