"""What the case makes of two planes, with fakes in their place: no Ray, no TransferQueue."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.cases import transferqueue
from bench.cases.equality import ResultsDiffer
from bench.peers.planes import Plane
from bench.peers.venv import PeerMissing
from bench.place import Place
from bench.scale import SMOKE

from .fakes import TINY

URL = "http://service"


class FakePlane:
    """Each call takes so many seconds."""

    def __init__(self, seconds: float, keys: list[str]) -> None:
        self._seconds, self._keys = seconds, keys
        self.is_closed = False

    def fill(self, profile: Path) -> None:
        assert profile.exists()

    def answers(self) -> dict[str, Any]:
        return {"kv_list": self._keys}

    def seconds(self, call: str, calls: int) -> list[float]:
        return [self._seconds] * calls

    def close(self) -> None:
        self.is_closed = True


class NoServer(Place):
    """No service is started."""

    @contextmanager
    def server(self, name: str) -> Iterator[Any]:
        yield SimpleNamespace(url=URL)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return NoServer(replace(TINY, calls=4), tmp_path, lambda _: None)


def planes(monkeypatch: pytest.MonkeyPatch, theirs: FakePlane, ours: FakePlane) -> None:
    monkeypatch.setattr(Plane, "on", lambda url, version, log: ours if url == URL else theirs)


def test_each_call_is_judged_by_its_own_bound(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs, ours = FakePlane(2.0, ["a"]), FakePlane(1.0, ["a"])
    planes(monkeypatch, theirs, ours)
    outcome = transferqueue.run(place)
    states = {line.row: line.state for line in outcome.lines}
    assert states.pop("TransferQueue's notify, 512 rows x 28") == "NOT MET"
    assert (len(states), {*states.values()}) == (8, {"met"})
    assert outcome.data["kv_put"]["ours"]["median_ms"] == 1000
    assert theirs.is_closed
    assert ours.is_closed


def test_nothing_is_timed_where_answers_differ(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs, ours = FakePlane(2.0, ["a"]), FakePlane(1.0, ["b"])
    planes(monkeypatch, theirs, ours)
    with pytest.raises(ResultsDiffer, match="kv_list"):
        transferqueue.run(place)
    assert theirs.is_closed
    assert ours.is_closed


def test_without_transferqueue_nothing_is_judged(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> Plane:
        raise PeerMissing("TransferQueue 0.1.11 cannot be installed: no network")

    monkeypatch.setattr(Plane, "on", missing)
    lines = transferqueue.run(place).lines
    assert {(line.state, line.note) for line in lines} == {
        ("not measured", "TransferQueue 0.1.11 cannot be installed: no network")
    }
    assert len(lines) == 9


def test_a_smoke_run_does_without(tmp_path: Path) -> None:
    lines = transferqueue.run(NoServer(SMOKE, tmp_path, lambda _: None)).lines
    assert {line.state for line in lines} == {"-"}
