"""A process from the nursery is to its test what one of subprocess.Popen would be."""

import signal
import subprocess

import pytest

from .conftest import DEADLINE_S, started


def test_one_that_does_not_end_in_time_is_killed() -> None:
    process = started("--port", "0", "--journal", "memory:")
    with pytest.raises(subprocess.TimeoutExpired):
        process.communicate(timeout=0)
    assert process.wait(DEADLINE_S) == -signal.SIGKILL
    assert (process.stdout.closed, process.stderr.closed) == (True, True)


def test_all_that_it_said_is_told_once_it_has_ended() -> None:
    process = started("--help")
    out, err = process.communicate(timeout=DEADLINE_S)
    assert (process.poll(), err) == (0, "")
    assert "--journal" in out
