"""The verdict of a run: what has learned, and each thing that is wrong with the account."""

import json
from pathlib import Path

import pytest

from batchmeta import Consumption
from examples.grpo.job import Job
from examples.grpo.outcome import Outcome, outcome
from examples.grpo.plot import plot
from examples.grpo.progress import SEEN, Progress

JOB = Job(Path(), steps=20, prompts=1, answers=2)


def progress(*, last: float = 0.9, staleness: float = 1, again: bool = False) -> Progress:
    """Twenty steps of two rows; the first two have the reward 0.1, the last two `last`."""
    found = Progress()
    for step in range(20):
        seen = dict.fromkeys(SEEN, 1.0) | {"seconds": step / 2, "staleness": staleness}
        seen["reward"] = 0.1 if step < 2 else last
        rows = [0, 1] if again and step == 19 else [2 * step, 2 * step + 1]
        found.add(f"c{step}", rows, seen)
    return found


def counted(consumed: int = 40, dead: int = 0, total: int = 40) -> Consumption:
    return Consumption("train", 1, consumed, 0, dead, total, True, None, None)


def found(made: Progress, counts: Consumption, left: int = 0) -> Outcome:
    return outcome(JOB, "files", made, counts, [], left)


def test_a_right_run_has_no_faults() -> None:
    result = found(progress(), counted())
    assert result.faults(JOB) == []
    said = json.loads(result.line())
    assert (said["reward_start"], said["reward_end"], said["has_learned"]) == (0.1, 0.9, True)
    assert (said["samples"], said["trained"], said["duplicates"], said["lost"]) == (40, 40, 0, 0)


def test_samples_that_were_too_old_are_not_lost() -> None:
    result = found(progress(), counted(dead=2, total=42))
    assert result.faults(JOB) == []
    assert (result.samples, result.trained, result.too_old) == (42, 40, 2)


@pytest.mark.parametrize(("last", "has_learned"), [(0.41, True), (0.39, False), (0.1, False)])
def test_learning_is_a_gain_of_three_tenths(last: float, has_learned: bool) -> None:
    assert found(progress(last=last), counted()).has_learned is has_learned


@pytest.mark.parametrize(
    ("made", "counts", "left", "told"),
    [
        (progress(again=True), counted(consumed=38, total=38), 0, "2 samples trained twice, 0 neither"),
        (progress(), counted(total=42), 0, "0 samples trained twice, 2 neither"),
        (progress(), counted(consumed=38), 0, "0 samples trained twice, 4 neither"),
        (progress(staleness=3), counted(), 0, "samples were 3 versions old, and 2 is the most"),
        (progress(), counted(), 5, "5 values are left in the storage"),
    ],
)
def test_each_fault_is_told(made: Progress, counts: Consumption, left: int, told: str) -> None:
    (fault,) = found(made, counts, left).faults(JOB)
    assert told in fault


def test_a_run_that_ended_early_is_a_fault() -> None:
    longer = Job(Path(), steps=21, prompts=1, answers=2)
    assert found(progress(), counted()).faults(longer) == ["20 steps of 21, 40 samples trained"]


@pytest.mark.parametrize("name", ["plot.png", "plot.svg"])
def test_the_plot_is_written(tmp_path: Path, name: str) -> None:
    file = tmp_path / "new" / name
    plot(file, JOB, progress())
    assert file.read_bytes()[:5] == (b"\x89PNG\r" if name.endswith("png") else b"<?xml")
