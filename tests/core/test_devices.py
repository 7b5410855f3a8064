"""The device is a setting: one that is not there is a clear error; `auto` measures; the engine's tests pass on an NPU.

The NPU is simulated (simulated_npu.py) in a process of its own, which runs the same test files again.
"""

import os
import subprocess
import sys

import pytest
import torch

from core.device import DeviceUnavailable, choose, measure_readiness

from ..conftest import ROOT
from .world import DEVICE_VARIABLE

ENGINE_TESTS = (
    "tests/core/test_readiness.py",
    "tests/core/test_schema.py",
    "tests/model/test_model.py::test_the_engine_is_the_model",
    "tests/contracts/test_samplers.py",
)
ON_NPU = os.environ.get(DEVICE_VARIABLE) == "npu"


def quiet(_: str) -> None:
    """A log nobody reads."""


def test_cpu_is_cpu() -> None:
    assert choose("cpu", quiet) == torch.device("cpu")


@pytest.mark.parametrize("name", ["", "CPU", "gpu", "npu:", "npu:x", "cuda:-1", "cpu:0", "auto:0", "npu:0 "])
def test_a_name_that_is_no_device_says_which_there_are(name: str) -> None:
    with pytest.raises(DeviceUnavailable, match="use cpu, npu, npu:0, cuda, cuda:0 or auto"):
        choose(name, quiet)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here: it would be found")
@pytest.mark.parametrize("name", ["cuda", "cuda:0", "cuda:7"])
def test_a_device_that_is_not_there_is_an_error_and_no_fallback(name: str) -> None:
    with pytest.raises(DeviceUnavailable, match="torch sees 0 cuda"):
        choose(name, quiet)


@pytest.mark.skipif(ON_NPU or hasattr(torch, "npu"), reason="there is an NPU here: it would be found")
def test_an_npu_without_torch_npu_is_an_error_that_names_it() -> None:
    with pytest.raises(DeviceUnavailable, match="torch_npu cannot be loaded"):
        choose("npu", quiet)


def test_auto_measures_says_what_it_saw_and_takes_the_fastest() -> None:
    lines: list[str] = []
    seen: list[str] = []

    def measure(device: torch.device) -> float:
        seen.append(device.type)
        return {"cpu": 2.0, "npu": 1.0, "cuda": 3.0}[device.type]

    chosen = choose("auto", lines.append, measure)
    assert seen[0] == "cpu"
    assert chosen.type == ("npu" if "npu" in seen else "cpu")
    assert any("readiness of 1,024 rows" in line and f"taking {chosen}" in line for line in lines)


def test_the_measure_is_seconds_of_the_readiness_check() -> None:
    assert 0 < measure_readiness(torch.device("npu:0" if ON_NPU else "cpu"), rounds=3) < 1


@pytest.mark.skipif(ON_NPU, reason="this is that process")
def test_the_engine_tests_pass_on_a_simulated_npu() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, *ENGINE_TESTS]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, DEVICE_VARIABLE: "npu"}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert "passed" in done.stdout


@pytest.mark.skipif(not ON_NPU, reason="only in the process with the simulated NPU")
def test_the_engine_keeps_its_bit_words_on_the_npu() -> None:
    from .world import new_engine

    engine = new_engine()
    assert engine.device.type == "npu"
    assert choose("npu:0", quiet) == engine.device
    with pytest.raises(DeviceUnavailable, match="torch sees 1 npu"):
        choose("npu:1", quiet)
