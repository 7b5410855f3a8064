"""Load: how wrk is started and how its output is read, with and without wrk and the peer."""

import shutil
from pathlib import Path

import pytest

from bench import wrk
from bench.cases.puts import check_count, rate_lines, tail_lines
from bench.cases.request import _line as request_line
from bench.outcome import tails
from bench.place import BEFORE, SEED, Place
from bench.turns import Runs

from .fakes import TINY, FakePeer, no_peer

MUST = {"wrk": 3.0, "client": 1.5}


def test_without_wrk_the_row_is_not_measured_and_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(wrk.WrkMissing, match=r"^wrk is not on PATH: apt-get install wrk$") as missing:
        wrk.require()
    place = Place(TINY, tmp_path, lambda _: None, lambda version, tell: FakePeer())
    by_wrk, by_client = rate_lines(place, "put", MUST, {"client": rate(30), SEED: rate(10)}, str(missing.value))
    assert (by_wrk.state, by_wrk.note) == ("not measured", str(missing.value))
    assert (by_client.state, by_client.ratio) == ("met", 3.0)


def test_a_rate_below_what_must_be_is_not_met(tmp_path: Path) -> None:
    place = Place(TINY, tmp_path, lambda _: None, lambda version, tell: FakePeer())
    by_wrk, by_client = rate_lines(place, "put", MUST, {"wrk": rate(29), "client": rate(15), SEED: rate(10)}, "")
    assert [by_wrk.state, by_client.state] == ["NOT MET", "met"]


def test_without_the_peer_nothing_is_judged(tmp_path: Path) -> None:
    place = Place(TINY, tmp_path, lambda _: None, no_peer)
    place.peer(SEED)
    lines = rate_lines(place, "put", MUST, {"wrk": rate(29), "client": rate(15)}, "")
    assert {line.state for line in lines} == {"not measured"}
    assert {line.note for line in lines} == {"TransferQueue 0.1.11 cannot be installed: no network"}


def test_a_tail_of_more_than_three_medians_is_not_met(tmp_path: Path) -> None:
    place = Place(TINY, tmp_path, lambda _: None, no_peer)
    rounds = [{"p50_ms": 1.0, "p99_ms": p99} for p99 in (2.0, 3.1, 9.0)]
    (line,) = tail_lines(place, "put", rounds)
    assert (line.state, line.ratio, line.row) == ("NOT MET", 3.1, "put, by wrk: p99 over median")
    assert tail_lines(place, "put", rounds[:1])[0].state == "met"


def test_the_worst_tail_of_a_case_is_judged_and_named() -> None:
    steady, jumpy = Runs(((1.0,) * 200,)), Runs(((1.0,) * 195 + (4.0,) * 5,))
    few = Runs(((1.0, 9.0),))
    (line,) = tails({"a": steady, "b": jumpy, "c": few})
    assert (line.row, line.ratio, line.state) == ("p99 over median, the worst of 2: b", 4.0, "NOT MET")
    assert tails({"a": steady})[0].state == "met"
    assert tails({"c": few}) == []


def test_the_tail_of_a_row_that_is_shorter_than_what_the_machine_takes_is_not_judged() -> None:
    def jumpy(median: float) -> Runs:
        return Runs(((median,) * 195 + (4 * median,) * 5,))

    assert tails({"a": jumpy(0.99e-4)}) == []
    (line,) = tails({"a": jumpy(0.99e-4), "b": jumpy(1e-4)})
    assert (line.row, line.state) == ("b: p99 over median", "NOT MET")


def test_only_the_version_with_the_seed_is_judged_against(tmp_path: Path) -> None:
    place = Place(TINY, tmp_path, lambda _: None, lambda version, tell: FakePeer())
    runs = {"ours": rate(1), SEED: rate(19), BEFORE: rate(100)}
    assert request_line(place, SEED, "const", 20, runs).state == "NOT MET"
    assert request_line(place, BEFORE, "const", 20, runs).state == "-"


def test_what_is_there_must_be_what_was_counted() -> None:
    check_count("samples", 100, 100)
    check_count("samples", 164, 100)  # in flight when the load stopped
    for there in (99, 165):
        with pytest.raises(wrk.WrkFailed, match=f"{there} samples after 100"):
            check_count("samples", there, 100)
    check_count("rows", 808, 100, 8, 1)
    with pytest.raises(wrk.WrkFailed):
        check_count("rows", 792, 100, 8, 1)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ('{"requests": 10, "seconds": 1, "errors": 1, "p50_ms": 1, "p99_ms": 1}', 0),
        ('{"requests": 0, "seconds": 1, "errors": 0, "p50_ms": 1, "p99_ms": 1}', 0),
        ("unable to connect", 1),
    ],
)
def test_a_load_with_wrong_replies_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, status: int
) -> None:
    fake = tmp_path / "wrk"
    fake.write_text(f"#!/bin/sh\necho '{said}'\nexit {status}\n")
    fake.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda _: str(fake))
    with pytest.raises(wrk.WrkFailed) as failed:
        wrk.load("put", "http://127.0.0.1:9", 1, 1)
    assert "\n" not in str(failed.value)


def rate(per_s: float) -> Runs:
    return Runs(((per_s,), (per_s,)))
