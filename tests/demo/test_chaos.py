"""A small step from the command line in which every kind of process dies: its account is right. The draw is seeded, the
moments are not.
"""

import re
import subprocess
import sys

from tests.conftest import ROOT

SMALL = ("--prompts", "8", "--answers", "4", "--workers", "2", "--max-len", "64", "--storage", "memory")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "demo", *SMALL, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)


def test_whoever_dies_every_sample_is_trained_exactly_once() -> None:
    done = run("--chaos", "--seed", "57")
    assert done.returncode == 0, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    killed = re.search(r"killed: (.*?) samples handed out", said)
    assert killed is not None, said
    for name in ("rollout worker", "rank", "actor", "service"):
        assert name in killed[1], said
    assert "put = consumed by old_log_prob, ref, actor_update = deleted = 32" in said
    assert "Each of 32 samples was trained exactly once" in said


def test_a_service_of_somebody_else_is_not_killed() -> None:
    done = run("--chaos", "--url", "http://127.0.0.1:9")
    assert done.returncode == 2
    assert "leave out --url" in done.stderr
