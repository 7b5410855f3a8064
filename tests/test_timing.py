"""The longest files are there and begin first; a run prints its slowest files, and in CI it must not take too long."""

import pytest

from .conftest import ROOT, STORAGE, group
from .timing import BUDGET_S, LONGEST, MOST_SHOWN, Timing, budget, turn

PLAIN = ("-p", "no:cacheprovider", "-p", "no:asyncio", "-p", "no:schemathesis")


def run(pytester: pytest.Pytester, timing: Timing, last: str = "pass") -> pytest.RunResult:
    """One file more than is shown; the last test does this."""
    for number in range(MOST_SHOWN + 1):
        pytester.makepyfile(**{f"test_{number}": f"def test_it():\n    {last if number == MOST_SHOWN else 'pass'}"})
    return pytester.runpytest_inprocess(*PLAIN, plugins=[timing])


def after(seconds: float, budget_s: float | None) -> Timing:
    """Of a run that takes so long."""
    times = iter([0.0, seconds])
    return Timing(budget_s, lambda: next(times))


def test_a_run_within_its_budget_says_which_files_were_the_slowest(pytester: pytest.Pytester) -> None:
    timing = after(9.0, 10.0)
    timing.by_file["test_7.py"] = 100.0
    done = run(pytester, timing)
    assert done.ret == 0
    done.stdout.fnmatch_lines(["*slowest 10 files*", " 100.0 s  test_7.py", *["   ?.? s  test_*.py"] * 9])
    done.stdout.no_fnmatch_line("*the run took*")


def test_a_run_past_its_budget_fails_and_says_so(pytester: pytest.Pytester) -> None:
    done = run(pytester, after(11.0, 10.0))
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    done.stdout.fnmatch_lines(["*slowest 10 files*", "the run took 11 s, and 10.0 s is the most: *"])


def test_a_run_without_a_budget_may_take_as_long_as_it_likes(pytester: pytest.Pytester) -> None:
    assert run(pytester, after(1e6, None)).ret == 0


def test_a_run_that_ended_otherwise_keeps_its_status(pytester: pytest.Pytester) -> None:
    assert run(pytester, after(11.0, 10.0), "__import__('pytest').exit('enough', returncode=7)").ret == 7


@pytest.mark.parametrize(
    ("ci", "long", "arguments", "expected"),
    [
        ("true", "", [], BUDGET_S),
        ("true", "1", [], None),
        ("", "", [], None),
        ("true", "", ["test_1.py"], None),
    ],
)
def test_only_a_whole_run_in_ci_has_a_budget(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    ci: str,
    long: str,
    arguments: list[str],
    expected: float | None,
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setenv("TEST_LONG", long)
    pytester.makepyfile(test_1="")
    pytester.makeini("[pytest]\ntestpaths = test_1.py")
    assert budget(pytester.parseconfig(*PLAIN, *arguments)) == expected


def test_the_longest_are_there_and_come_first() -> None:
    assert [each for each in LONGEST if each != "storage" and not (ROOT / each).is_file()] == []
    assert [turn(each) for each in (*LONGEST, "tests/test_timing.py")] == list(range(len(LONGEST) + 1))


def test_this_run_has_them_first(request: pytest.FixtureRequest) -> None:
    turns = [turn(group(item)) for item in request.session.items]
    assert turns == sorted(turns)
    assert (ROOT / STORAGE[0]).is_dir()
