"""The command line with cases of our own: statuses, one clear line for whatever is wrong, results kept."""

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

import bench.__main__ as command
import bench.cases
from bench.cases.equality import ResultsDiffer
from bench.child import ChildFailed
from bench.outcome import Case, Line, Outcome, at_least, at_most, unmeasured
from bench.place import SEED, Place
from bench.profile import make
from bench.results import Results, Unwritable
from bench.scale import FULL, QUICK, SMOKE
from crew.processes import StartFailed

from .fakes import FakePeer, no_peer

Run = Callable[..., int]


def case(name: str, line: Line | BaseException, compares: bool = False) -> Case:
    def run(place: Place) -> Outcome:
        if isinstance(line, BaseException):
            raise line
        return Outcome([line])

    return Case(name, f"what {name} is", run, compares)


MET, NOT_MET = at_least("a", 2, 3.0, "6", "2"), at_most("b", 2, 3.0, "3 against 1")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    def with_cases(*cases: Case, arguments: tuple[str, ...] = ("--quick",)) -> int:
        monkeypatch.setattr(bench.cases, "CASES", cases)
        return command.main([*arguments, "--out", str(tmp_path / "out" / "results.json")])

    return with_cases


def results_in(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "out" / "results.json").read_text())["cases"]
    return found


def test_all_met_is_0(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(case("one", MET), case("two", Line("told", ours="1 ms"))) == 0
    said = capsys.readouterr().out
    assert "met" in said
    assert "results.json" in said


@pytest.mark.parametrize("line", [NOT_MET, unmeasured("c", ">= 2 x", "wrk is not on PATH: apt-get install wrk")])
def test_not_met_or_not_measured_is_1(run: Run, line: Line, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(case("one", MET), case("two", line)) == 1
    assert line.state in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "error",
    [ResultsDiffer("0.1.9 and ours differ at keys[0]"), ChildFailed("Inside: died"), StartFailed("not\nstarted")],
)
def test_what_breaks_is_one_line_and_what_ended_is_kept(
    run: Run, error: Exception, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(case("one", MET), case("two", error), case("three", MET)) == 1
    said = capsys.readouterr().err
    assert said.startswith("bench: " + " ".join(str(error).split()))
    assert said.count("\n") == 1
    assert list(results_in(tmp_path)) == ["one"]


def test_ctrl_c_is_130_and_says_how_to_go_on(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    assert run(case("one", MET), case("two", KeyboardInterrupt())) == 130
    said = capsys.readouterr().err
    assert "stopped" in said
    assert "--only" in said
    assert said.count("\n") == 1
    assert list(results_in(tmp_path)) == ["one"]
    assert signal.getsignal(signal.SIGINT) is before


def test_going_on_keeps_the_cases_that_are_there(run: Run, tmp_path: Path) -> None:
    cases = (case("one", MET), case("two", NOT_MET))
    assert run(*cases, arguments=("--quick", "--only", "two")) == 1
    assert run(*cases, arguments=("--quick", "--only", "one")) == 0
    assert sorted(results_in(tmp_path)) == ["one", "two"]
    assert run(cases[0]) == 0  # without --only all begins anew
    assert list(results_in(tmp_path)) == ["one"]


def test_another_scale_is_not_gone_on_with(run: Run, tmp_path: Path) -> None:
    run(case("one", MET))
    run(case("one", MET), case("two", MET), arguments=("--smoke", "--only", "two"))
    assert list(results_in(tmp_path)) == ["two"]


def test_an_unknown_case_is_one_line_that_names_the_known_ones(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(case("one", MET), arguments=("--only", "two")) == 2
    assert capsys.readouterr().err == "bench: there is no case 'two': use one\n"


def test_an_unknown_flag_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["--smok"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "--smok" in said


def test_an_output_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert command.main(["--smoke", "--out", str(tmp_path / "file" / "results.json")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("bench: cannot write results to ")
    assert said.count("\n") == 1
    with pytest.raises(Unwritable):
        Results(tmp_path / "file" / "x.json", SMOKE, keep=False)


def test_list_names_all_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--list"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said] == [
        "equality",
        "generate",
        "request",
        "end_to_end",
        "puts",
        "claims",
        "delete",
        "transferqueue",
        "shape",
        "loop",
        "parked",
        "waiting",
        "memory",
        "executor",
        "reads",
        "hold",
        "restart",
        "soak",
        "devices",
    ]


def test_equality_comes_before_what_is_compared() -> None:
    from bench.conduct import chosen

    cases = (case("equality", MET, True), case("a", MET, True), case("b", MET))
    assert [each.name for each in chosen(cases, ["a"], QUICK)] == ["equality", "a"]
    assert [each.name for each in chosen(cases, ["b"], QUICK)] == ["b"]
    assert [each.name for each in chosen(cases, ["a"], SMOKE)] == ["a"]
    assert [each.name for each in chosen(cases, [], FULL)] == ["equality", "a", "b"]


def test_a_peer_is_closed_before_what_is_measured_without_it(tmp_path: Path) -> None:
    from rich.console import Console

    from bench.conduct import conduct

    peer, seen = FakePeer(), []

    def without(place: Place) -> Outcome:
        seen.append(peer.is_closed)
        return Outcome([])

    def beside(place: Place) -> Outcome:
        assert place.loaded(SEED, 2, "const") is peer
        seen.append(peer.is_closed)
        return Outcome([])

    cases = [Case("a", "", beside, compares=True), Case("b", "", without)]
    results = Results(tmp_path / "r.json", QUICK, keep=False)
    assert conduct(cases, results, QUICK, lambda version, tell: peer, Console(quiet=True))
    assert seen == [False, True]
    assert results.found["peers"] == {SEED: {"TransferQueue": "0.0"}}


def test_a_missing_peer_is_asked_for_once_and_skipped(tmp_path: Path) -> None:
    asked: list[str] = []

    def start(version: str, tell: object) -> FakePeer:
        asked.append(version)
        return no_peer(version, tell)  # type: ignore[return-value]

    place = Place(QUICK, tmp_path, lambda _: None, start)
    assert place.loaded(SEED, 2, "const") is None
    assert place.peer(SEED) is None
    assert asked == [SEED]
    assert place.lacks(SEED) == "TransferQueue 0.1.11 cannot be installed: no network"


def test_the_profile_file_is_what_a_peer_loads(tmp_path: Path) -> None:
    place = Place(QUICK, tmp_path, lambda _: None, lambda version, tell: FakePeer())
    peer = place.loaded(SEED, 3, "distinct")
    assert isinstance(peer, FakePeer)
    assert peer.profile == make(3, "distinct")
