"""The training as a person runs it: it learns although its processes die, and goes on after all of them died.

A run of 20 s on two idle cores; with TEST_LONG=1 also one that is killed whole and goes on, one without a signal, and
one on openYuanrong.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from examples.grpo.__main__ import parse
from tests.conftest import DEADLINE_S, ROOT

COMMAND = [sys.executable, "-m", "examples.grpo", "--quick"]
LONG = os.environ.get("TEST_LONG") == "1"
RUN_S = 240  # an upper bound for a busy machine


def run(folder: Path, *arguments: str) -> tuple[int, dict[str, Any], str]:
    """Exit status, last line and all that was said."""
    command = [*COMMAND, "--plot", str(folder / "plot.svg"), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=RUN_S, check=False)
    last = done.stdout.splitlines()[-1] if done.stdout else ""
    assert last.startswith("{"), done.stdout + done.stderr
    return done.returncode, json.loads(last), done.stdout


def check_account(said: dict[str, Any], steps: int) -> None:
    assert (said["steps"], said["trained"]) == (steps, steps * 64)
    assert said["samples"] == said["trained"] + said["too_old"]
    assert (said["duplicates"], said["lost"], said["left_in_storage"]) == (0, 0, 0)
    assert said["most_stale"] <= 2


def test_it_learns_although_its_processes_are_killed(tmp_path: Path) -> None:
    status, said, text = run(tmp_path, "--chaos", "--seed", "3")
    assert status == 0, text
    check_account(said, 100)
    assert said["reward_end"] >= said["reward_start"] + 0.3
    assert said["killed"] >= 6
    for name in ("rollout", "trainer", "service"):
        assert name in text
    assert (tmp_path / "plot.svg").stat().st_size > 10_000


@pytest.mark.skipif(not LONG, reason="TEST_LONG=1 runs it: test_learning.py has the same in one process")
def test_without_advantages_it_learns_nothing(tmp_path: Path) -> None:
    status, said, text = run(tmp_path, "--zero-advantages")
    assert (status, said["has_learned"]) == (1, False), text
    assert abs(said["reward_end"] - said["reward_start"]) < 0.1
    check_account(said, 100)


@pytest.mark.skipif(not LONG, reason="TEST_LONG=1 runs it: the storages pass the same tests in tests/crew")
def test_it_learns_on_openyuanrong(tmp_path: Path) -> None:
    status, said, text = run(tmp_path, "--storage", "openyuanrong")
    assert status == 0, text
    check_account(said, 100)


@pytest.mark.skipif(not LONG, reason="TEST_LONG=1 runs it: test_progress.py has the parts")
def test_after_all_died_it_goes_on_from_checkpoints_of_both(tmp_path: Path) -> None:
    folder, plot = tmp_path / "run", str(tmp_path / "plot.svg")
    command = [*COMMAND, "--steps", "24", "--folder", str(folder), "--plot", plot]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True) as driver:
        until_there(folder / "trainer" / "step-000008.safetensors", driver)
        os.killpg(driver.pid, signal.SIGKILL)
    # The service is in a session of its own, and outlives its driver.
    for pid in processes_of(folder):
        os.kill(pid, signal.SIGKILL)
    until_gone(folder)
    _, said, text = run(tmp_path, "--steps", "24", "--folder", str(folder), "--resume")
    assert re.search(r"goes on from step (6|12|18)\b", text), text
    check_account(said, 24)


def until_there(file: Path, driver: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not file.exists():
        assert driver.poll() is None, "the run ended early"
        assert time.monotonic() < deadline, file
        time.sleep(0.01)  # polls real processes


def processes_of(folder: Path) -> list[int]:
    """Those with the folder in their command line."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if str(folder).encode() in file.read_bytes():
                found.append(int(file.parent.name))
    return found


def until_gone(folder: Path) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while left := processes_of(folder):
        assert time.monotonic() < deadline, left
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--seed", "-1"], "--seed: must be at least 0"),
        (["--steps", "0"], "must be at least 1"),
        (["--plot", "plot.pdf"], "must end with .png or .svg"),
        (["--resume"], "name its folder with --folder"),
        (["--resume", "--folder", "{empty}/no"], "name its folder with --folder"),
        (["--resume", "--folder", "{full}", "--storage", "openyuanrong"], "--resume needs --storage files"),
        (["--folder", "{full}"], "is not empty"),
        (["--storage", "memory"], "invalid choice"),
    ],
)
def test_wrong_use_is_told_before_anything_starts(
    arguments: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "file").touch()
    with pytest.raises(SystemExit, match="2"):
        parse([one.format(empty=tmp_path, full=full) for one in arguments])
    assert told in capsys.readouterr().err


def test_a_folder_without_checkpoints_is_nothing_to_resume(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    command = [*COMMAND, "--folder", str(folder), "--resume"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=RUN_S, check=False)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "has no checkpoint to resume from" in done.stdout
