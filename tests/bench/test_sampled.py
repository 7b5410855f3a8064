"""`--profile`, as a person starts it: the real service under the real py-spy and wrk."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import bench.__main__ as command
from bench.layers import LAYERS
from bench.sampled import LOADS
from tests.conftest import ROOT

DEADLINE_S = 120


def test_a_profile_is_a_graph_and_shares_that_add_up(tmp_path: Path) -> None:
    if shutil.which("wrk") is None and os.environ.get("CI") != "true":
        pytest.skip("wrk is not on PATH: apt-get install wrk")
    line = [sys.executable, "-m", "bench", "--smoke", "--profile", "put", "--out", str(tmp_path)]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads((tmp_path / "profile-put.json").read_text())
    assert list(told["shares_percent"]) == list(LAYERS)
    assert sum(told["shares_percent"].values()) == pytest.approx(100, abs=0.1)
    assert told["samples"] > 0
    assert 0 <= told["waits_for_interpreter_percent"] <= 100
    assert told["shares_percent"]["other"] < 50  # a thread that nobody knows would be most of it
    boxes = ElementTree.parse(tmp_path / "profile-put.svg").getroot().itertext()
    assert any("EngineThread._drain" in text for text in boxes)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


def test_an_unknown_load_is_one_line_that_names_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--profile", "puts"]) == 2
    assert capsys.readouterr().err == f"bench: there is no case 'puts': use {', '.join(LOADS)}\n"
