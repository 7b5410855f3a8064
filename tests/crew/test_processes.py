"""Programs that the demo and the bench end: they really end, and no wait for their end is unbounded."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crew import service as service_module
from crew.processes import end, kill, launch
from crew.service import ServiceProcess
from tests.conftest import DEADLINE_S

ENDLESS = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('here', flush=True)\nsignal.pause()"


@pytest.fixture
def endless(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A program that SIGTERM does not end."""
    with subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        yield process


@contextmanager
def held(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """The lock of Popen, as a Ctrl-C may leave it."""
    with process._waitpid_lock:  # type: ignore[attr-defined]
        yield


def test_what_does_not_end_is_killed_and_its_status_told(endless: "subprocess.Popen[bytes]") -> None:
    assert end(endless, 0.1) == -9


def test_a_lock_that_ctrl_c_left_held_in_popen_does_not_hold_up_a_kill(endless: "subprocess.Popen[bytes]") -> None:
    with held(endless):
        assert kill(endless, 0.1) is None
    assert endless.wait(DEADLINE_S) == -9


def test_nor_does_it_hold_up_the_end_of_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "launch", lambda _, *places: launch([sys.executable, "-c", ENDLESS], *places))
    monkeypatch.setattr(service_module, "STOP_S", 0.1)
    for stops in (ServiceProcess.stop, ServiceProcess.kill):
        service = ServiceProcess(tmp_path)
        with held(service._process):
            stops(service)
        assert service._process.wait(DEADLINE_S) < 0
