"""A small step from end to end, as a person runs it: real processes, the service, and each of the two storages."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from crew.storage import StorageUnavailable
from crew.yuanrong_worker import yuanrong_storage
from tests.conftest import ROOT

SMALL = ("--prompts", "4", "--answers", "4", "--workers", "2", "--max-len", "64")
DEADLINE_S = 120


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "demo", *SMALL, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=180, check=False)


@pytest.mark.parametrize("storage", ["memory", "yuanrong"])
def test_the_account_of_a_small_step_adds_up(storage: str, request: pytest.FixtureRequest) -> None:
    if storage == "yuanrong":
        request.getfixturevalue("yuanrong_runs")
    done = run("--storage", storage)
    assert done.returncode == 0, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert "prompts: put = consumed by rollout = deleted = 4" in said
    assert "put = consumed by old_log_prob, ref, actor_update = deleted = 16" in said
    assert "Everything adds up" in said


def test_a_service_that_is_not_there_ends_it_with_one_line(tmp_path: Path) -> None:
    done = run("--storage", "memory", "--url", "http://127.0.0.1:9")
    assert done.returncode == 1
    assert re.search(r"^demo: .*127\.0\.0\.1:9|^demo: .*refused|^demo: PUT", done.stdout, re.MULTILINE), done.stdout


def test_a_partition_of_another_run_ends_it_with_one_line(server_url: str) -> None:
    httpx.put(f"{server_url}/v1/partitions/prompts", json={"expected_samples": 4}).raise_for_status()
    httpx.post(f"{server_url}/v1/partitions/prompts/samples", json={"count": 1}).raise_for_status()
    try:
        done = run("--storage", "memory", "--url", server_url)
    finally:
        httpx.delete(f"{server_url}/v1/partitions/prompts").raise_for_status()
    assert done.returncode == 1
    assert "demo: partition prompts" in done.stdout
    assert "delete it first" in done.stdout


@pytest.fixture
def long_step() -> Iterator[subprocess.Popen[str]]:
    """A step that takes a while, in a process group of its own, as a shell would start it."""
    command = [sys.executable, "-m", "demo", "--storage", "memory", "--workers", "2", "--max-len", "64"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        yield process
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def test_ctrl_c_in_the_middle_of_the_step_stops_all_that_was_started(long_step: subprocess.Popen[str]) -> None:
    assert long_step.stdout is not None
    found = re.search(r"http://\S+:\d+", long_step.stdout.readline())
    assert found is not None
    url = found[0]
    until_samples_are_there(url)

    os.killpg(long_step.pid, signal.SIGINT)

    said = long_step.communicate(timeout=DEADLINE_S)[0]
    assert long_step.returncode == 130, said
    assert "stopped" in said
    until_gone(long_step.pid)
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/readyz")


def until_samples_are_there(url: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        answer = httpx.get(f"{url}/v1/partitions/train@step_0")
        if answer.status_code == 200 and answer.json()["num_samples"] > 0:
            return
        time.sleep(0.05)
    raise TimeoutError("no sample was put")


def until_gone(group: int) -> None:
    """What Python keeps beside a process notices its end, and ends a moment later."""
    deadline = time.monotonic() + 10
    while left := processes_of_group(group):
        assert time.monotonic() < deadline, left
        time.sleep(0.01)


def processes_of_group(group: int) -> list[int]:
    """Those that run; one that has ended and is not yet reaped does not."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, of_group = stat.read_text().rpartition(")")[2].split()[:3]
            if int(of_group) == group and state != "Z":
                found.append(int(stat.parent.name))
    return found


def test_without_openyuanrong_it_says_so_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)

    with pytest.raises(StorageUnavailable, match="--storage memory") as refused, yuanrong_storage(tmp_path):
        pass

    assert "\n" not in str(refused.value)
