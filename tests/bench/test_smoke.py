"""The real thing, as a person starts it: a smoke run from end to end, Ctrl-C in its middle, the ticker on its own."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from bench import ticker
from bench.ticker import summary
from tests.conftest import ROOT
from tests.demo.test_step import processes_of_group

DEADLINE_S = 120


def start(*arguments: str) -> "subprocess.Popen[str]":
    """In a process group of its own, as a shell would start it."""
    command = [sys.executable, "-m", "bench", "--smoke", *arguments]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def test_a_smoke_run_goes_through_all_cases(tmp_path: Path) -> None:
    out = tmp_path / "smoke.json"
    with start("--out", str(out)) as process:
        said, wrong = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, said + wrong
    found = json.loads(out.read_text())
    assert len(found["cases"]) == 19
    lines = [line for case in found["cases"].values() for line in case["lines"]]
    assert {line["state"] for line in lines} <= {"-", "not measured"}
    assert "lag of a 1 ms ticker" in " ".join(said.split())


@pytest.fixture
def long_run(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    with start("--only", "delete", "--only", "loop", "--out", str(tmp_path / "smoke.json")) as process:
        yield process
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def test_ctrl_c_in_the_middle_stops_all_that_was_started_and_keeps_results(
    long_run: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    until_kept("delete", tmp_path / "smoke.json")
    servers = until_a_ticker_runs(long_run.pid)

    os.killpg(long_run.pid, signal.SIGINT)

    said, wrong = long_run.communicate(timeout=DEADLINE_S)
    assert long_run.returncode == 130, said + wrong
    assert re.fullmatch(r"bench: stopped; cases that ended are kept in \S+smoke.json: go on with --only.*\n", wrong)
    assert list(json.loads((tmp_path / "smoke.json").read_text())["cases"]) == ["delete"]
    until_gone(long_run.pid)
    assert [pid for pid in servers if Path(f"/proc/{pid}").exists()] == []


def until_kept(case: str, path: Path) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        if path.exists() and case in json.loads(path.read_text())["cases"]:
            return
        time.sleep(0.05)
    raise TimeoutError(f"{case} did not end")


def until_a_ticker_runs(parent: int) -> list[int]:
    """The servers that the run has started; each is in a session of its own."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        found = [int(pid) for pid in children if "bench.ticker" in Path(f"/proc/{pid}/cmdline").read_text()]
        if found:
            return found
        time.sleep(0.05)
    raise TimeoutError("no server was started")


def until_gone(group: int) -> None:
    """The process that forks the others ends when it sees that its parent has gone."""
    deadline = time.monotonic() + 10
    while processes_of_group(group) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_of_group(group) == []


def test_the_ticker_serves_and_says_how_late_it_was(tmp_path: Path) -> None:
    out = tmp_path / "seen.json"
    command = [sys.executable, "-m", "bench.ticker", "--out", str(out), "--", "--port", "0", "--journal", "memory:"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while "API docs" not in (line := process.stdout.readline()):
            assert line, "it ended before it served"
        time.sleep(0.3)  # ticks
        process.send_signal(signal.SIGUSR1)
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        said = process.stdout.read()
        assert process.wait(DEADLINE_S) == 0
    assert re.search(r"^\d+ ticks: p50 [\d.]+ ms, p99 [\d.]+ ms, max [\d.]+ ms late$", said, re.MULTILINE)
    first, second = json.loads(out.read_text())
    assert len(first["lags"]) > 20
    assert len(second["lags"]) > 20
    assert len(second["pauses"]) == len(second["generations"])


def test_a_busy_port_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = str(busy.getsockname()[1])
        command = [sys.executable, "-m", "bench.ticker", "--", "--port", port, "--journal", "memory:"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 2
    assert re.fullmatch(rf"bench\.ticker: cannot listen on 127\.0\.0\.1:{port}: .*\n", done.stderr)


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ticker.main(["--out", str(tmp_path / "none" / "seen.json")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_no_tick_is_no_number() -> None:
    assert summary([]) == "no tick was seen"
    assert summary([0.001, 0.002]) == "2 ticks: p50 1.00 ms, p99 2.00 ms, max 2.00 ms late"
