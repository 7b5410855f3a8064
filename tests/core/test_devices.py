"""The device is a setting: one that is not there is a clear error; `auto` measures; the engine's tests pass on others.

The other is a simulated NPU (simulated_npu.py), in a process that runs the same files again. Torch's CPU is in
test_words.py. TEST_LONG=1: those files on torch's CPU too, and with them the suites of all samplers.
"""

import os
import subprocess
import sys

import pytest
import torch

from core.device import CPU, Device, DeviceUnavailable, choose, measure_readiness
from core.state.cells.readiness import HostWords
from core.state.cells.torch_readiness import TorchWords

from ..conftest import ROOT
from .world import DEVICE_VARIABLE, add, device_tested, new_engine, on_torch

LONG = os.environ.get("TEST_LONG") == "1"
ENGINE_TESTS = (
    "tests/core/test_words.py",
    "tests/core/test_readiness.py",
    "tests/core/test_schema.py",
    "tests/model/test_model.py::test_the_engine_is_the_model",
    *(["tests/contracts/test_samplers.py"] if LONG else []),
)
TESTED = os.environ.get(DEVICE_VARIABLE)
ON_NPU = TESTED == "npu"


def quiet(_: str) -> None:
    """A log nobody reads."""


def test_cpu_is_cpu() -> None:
    assert choose("cpu", quiet) is CPU
    assert type(CPU.words(1)) is HostWords


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
    with pytest.raises(DeviceUnavailable, match=r"cannot be loaded .*torch_npu"):
        choose("npu", quiet)


def test_auto_measures_says_what_it_saw_and_takes_the_fastest() -> None:
    lines: list[str] = []
    seen: list[str] = []

    def measure(device: Device) -> float:
        seen.append(device.name)
        return {"cpu": 2.0, "npu": 1.0, "cuda": 3.0}[device.name]

    chosen = choose("auto", lines.append, measure)
    assert seen[0] == "cpu"
    assert ("npu" in seen) == hasattr(torch, "npu")
    assert chosen.name == ("npu" if "npu" in seen else "cpu")
    assert any("readiness of 1,024 rows" in line and f"taking {chosen.name}" in line for line in lines)


def test_where_torch_cannot_be_loaded_the_host_still_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("core.state.cells.torch_readiness")
    monkeypatch.setitem(sys.modules, "core.state.cells.torch_readiness", None)
    lines: list[str] = []
    assert choose("cpu", lines.append) is CPU
    assert lines == []
    with pytest.raises(DeviceUnavailable, match=r"device 'cuda': its libraries cannot be loaded \(.+\); use cpu"):
        choose("cuda:0", quiet)
    assert choose("auto", lines.append) is CPU
    assert [line.split(":")[0] for line in lines] == ["device 'cuda'", "device 'npu'", "device auto"]


@pytest.mark.parametrize("device", [CPU, on_torch("cpu"), device_tested()], ids=["host", "torch", "tested"])
def test_the_measure_is_seconds_of_the_readiness_check(device: Device) -> None:
    assert 0 < measure_readiness(device, rounds=3) < 1


@pytest.mark.skipif(TESTED is not None, reason="this is that process")
@pytest.mark.parametrize("device", ["torch", "npu"] if LONG else ["npu"])
def test_the_engine_tests_pass_on_a_device_of_torch(device: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, *ENGINE_TESTS]
    environment = {**os.environ, DEVICE_VARIABLE: device, "TEST_LONG": "0"}  # all suites, and each as long as ever
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert "passed" in done.stdout


@pytest.mark.skipif(TESTED is None, reason="only in a process with a device of torch")
def test_the_engine_keeps_its_bit_words_there() -> None:
    engine = new_engine()
    add(engine, "p", 1)
    words = engine.partitions["p"].status
    assert isinstance(words, TorchWords)
    assert words.device.type == ("npu" if ON_NPU else "cpu")


@pytest.mark.skipif(not ON_NPU, reason="only in the process with the simulated NPU")
def test_an_npu_that_is_there_is_chosen_by_name() -> None:
    chosen = choose("npu:0", quiet)
    assert chosen.name == "npu:0"
    assert type(chosen.words(1)) is TorchWords
    with pytest.raises(DeviceUnavailable, match="torch sees 1 npu"):
        choose("npu:1", quiet)
