"""The process that makes snapshots and checkpoints ends with its server, also where that is killed, and there is one at
a time for a journal's folder.
"""

import fcntl
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.conftest import DEADLINE_S, NO_TLS, ROOT, ServerProcess


@pytest.fixture
def held(tmp_path: Path) -> Iterator[int]:
    """A maker of before is still at work in the journal's folder, until this lock is let go of."""
    (tmp_path / "journal").mkdir()
    fd = os.open(tmp_path / "journal", os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    yield fd
    os.close(fd)


def server(folder: Path) -> ServerProcess:
    return ServerProcess("--journal", f"file:{folder}/journal")


def save(url: str, name: str) -> int | None:
    """The status, or None where the server was gone first."""
    with httpx.Client(base_url=url, timeout=DEADLINE_S, verify=NO_TLS) as http:
        try:
            return http.post("/v1/checkpoints", json={"name": name}).status_code
        except httpx.TransportError:
            return None


def makers(folder: Path) -> list[int]:
    """Processes that make something of this journal, and have not ended."""
    return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline") if _is_maker(path, folder)]


def _is_maker(path: Path, folder: Path) -> bool:
    try:
        words = path.read_bytes().split(b"\0")
    except OSError:  # it ended meanwhile
        return False
    return b"-m" in words and str(folder / "journal").encode() in words


def maker_of(folder: Path) -> int:
    """The next maker's descriptor, once it is there."""
    deadline = time.monotonic() + DEADLINE_S
    while not (found := makers(folder)):
        assert time.monotonic() < deadline
    assert len(found) == 1
    return os.pidfd_open(found[0])


def has_ended(maker: int) -> bool:
    ready = select.select([maker], [], [], DEADLINE_S)[0]
    os.close(maker)
    return bool(ready)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="looks at processes as Linux has them")
def test_of_servers_that_are_killed_again_and_again_no_maker_is_left(tmp_path: Path, held: int) -> None:
    with ThreadPoolExecutor(4) as pool:
        for life in range(3):
            killed = server(tmp_path)
            asked = pool.submit(save, killed.url, f"life-{life}")
            maker = maker_of(tmp_path)
            killed.kill()
            assert asked.result() is None
            assert has_ended(maker)
        last = server(tmp_path)
        asked = pool.submit(save, last.url, "last")
        maker = maker_of(tmp_path)
        fcntl.flock(held, fcntl.LOCK_UN)
        assert asked.result() == 201
        assert has_ended(maker)
    assert [path.name for path in (tmp_path / "journal.checkpoints").glob("*.checkpoint")] == ["last.checkpoint"]
    assert last.stop() == 0


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="looks at processes as Linux has them")
def test_a_server_that_stops_leaves_none_either(tmp_path: Path, held: int) -> None:
    stopped = server(tmp_path)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(save, stopped.url, "stopped")
        maker = maker_of(tmp_path)
        assert stopped.stop() == 0
        assert has_ended(maker)


BUSY = """
from app.snapshots.maker import end_with_parent
end_with_parent()
print("at work", flush=True)
while True:
    pass
"""


def test_it_ends_in_the_middle_of_its_work() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BUSY], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as busy:
        assert busy.stdin is not None
        assert busy.stdout is not None
        assert busy.stdout.readline() == "at work\n"
        assert busy.poll() is None
        busy.stdin.close()
        assert busy.wait(DEADLINE_S) == 3


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = _run(tmp_path / "none")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "none" in done.stderr


def _run(folder: Path) -> "subprocess.CompletedProcess[str]":
    """A maker whose parent lives on."""
    ours, its = os.pipe()
    try:
        command = [sys.executable, "-m", "app.snapshots.maker", str(folder), "1-1", "1000"]
        return subprocess.run(
            command, cwd=ROOT, stdin=ours, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
    finally:
        os.close(ours)
        os.close(its)
