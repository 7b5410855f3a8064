"""How long the files of a run take: which are started first, which were the slowest, and the most that CI allows.

A pytest plugin, in the process that the others report to (conftest.py). No test lives here.
"""

import os
import time
from collections import defaultdict
from collections.abc import Callable

import pytest

# The longest first: a long one that begins last leaves the other workers idle. A run prints what belongs here.
LONGEST = (
    "tests/examples/test_grpo.py",
    "tests/examples/test_learning.py",
    "storage",
    "tests/bench/test_smoke.py",
    "tests/contracts/test_samplers.py",
    "tests/model/test_model.py",
    "tests/core/test_devices.py",
    "tests/crash/test_failpoints.py",
    "tests/client/test_taken_values.py",
    "tests/faults/test_damage.py",
    "tests/app/test_schemathesis.py",
    "tests/client/test_loops.py",
    "tests/docs/test_code_blocks.py",
    "tests/app/test_life.py",
    "tests/client/test_batch.py",
    "tests/client/test_relayed.py",
    "tests/crash/test_resume.py",
    "tests/app/test_docs_page.py",
    "tests/crash/test_checkpoints.py",
    "tests/app/test_compaction.py",
    "tests/faults/test_large_bodies.py",
)
MOST_SHOWN = 10
BUDGET_S = 480  # twice what a whole run may take on two idle cores


def turn(group: str) -> int:
    """Where a file, or a group of them that goes to one worker, stands in line."""
    return LONGEST.index(group) if group in LONGEST else len(LONGEST)


class Timing:
    """`budget_s`: None where a run may take as long as it likes."""

    def __init__(self, budget_s: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._budget_s, self._clock = budget_s, clock
        self._began = self._took = clock()
        self.by_file: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.by_file[report.nodeid.partition("::")[0]] += report.duration

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._took = self._clock() - self._began
        if self._is_over and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @property
    def _is_over(self) -> bool:
        return self._budget_s is not None and self._took > self._budget_s

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if len(self.by_file) > MOST_SHOWN:
            terminalreporter.section(f"slowest {MOST_SHOWN} files")
            for file, seconds in sorted(self.by_file.items(), key=lambda one: -one[1])[:MOST_SHOWN]:
                terminalreporter.line(f"{seconds:6.1f} s  {file}")
        if self._is_over:
            terminalreporter.section("too slow", red=True)
            terminalreporter.line(
                f"the run took {self._took:.0f} s, and {self._budget_s} s is the most: see tests/timing.py"
            )


def budget(config: pytest.Config) -> float | None:
    """In CI, of a run of everything in its default form."""
    is_whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    is_default = os.environ.get("TEST_LONG") != "1"
    return BUDGET_S if os.environ.get("CI") == "true" and is_whole and is_default else None
