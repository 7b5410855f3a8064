"""A small step from end to end, as a person runs it: real processes, the service, and each of the two storages."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

SMALL = ("--prompts", "4", "--answers", "4", "--workers", "2", "--max-len", "64")


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


def test_a_service_that_is_not_there_ends_it_with_a_failure(tmp_path: Path) -> None:
    done = run("--storage", "memory", "--url", "http://127.0.0.1:9")
    assert done.returncode != 0
