"""The check that comes before all timing: it must notice any one cell, and say which."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.cases import equality
from bench.cases.equality import ResultsDiffer, compare, difference, expected
from bench.place import BEFORE, SEED, Place
from bench.profile import make
from bench.scale import SMOKE

from .fakes import TINY, FakePeer, no_peer

SPOILT = {
    "global_indexes[3]": lambda found: found["global_indexes"].__setitem__(3, 0),
    "keys[": lambda found: found["keys"].__setitem__(2, "other"),
    "fields": lambda found: found["fields"].pop(),
    "production_status[7]": lambda found: found["production_status"].__setitem__(7, 0),
    "shapes.responses[1][0]": lambda found: found["shapes"]["responses"][1].__setitem__(0, -1),
    "dtypes.uid": lambda found: found["dtypes"].__setitem__("uid", "int64"),
    "custom_meta[4].status": lambda found: found["custom_meta"][4].__setitem__("status", "failed"),
    "backend_meta.uid[5].packed_size": lambda found: found["backend_meta"]["uid"][5].__setitem__("packed_size", 1.0),
}


@pytest.mark.parametrize("where", SPOILT)
def test_one_other_cell_is_named(where: str) -> None:
    ours, theirs = expected(make(8, "distinct")), expected(make(8, "distinct"))
    compare("peer", theirs, ours)
    SPOILT[where](theirs)
    with pytest.raises(ResultsDiffer) as differ:
        compare("peer", theirs, ours)
    assert str(differ.value).startswith("peer and ours differ at " + where)
    assert "\n" not in str(differ.value)


UNEQUAL = [(1, 1.0), (1, True), (None, 0), ([], {}), ({"a": 1}, {"b": 1}), ([1], [1, 1])]


@pytest.mark.parametrize(("one", "other"), UNEQUAL)
def test_equal_to_python_is_not_equal_here(one: Any, other: Any) -> None:
    assert difference(one, other, "x") is not None


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A place with a server, shared by its tests, and a peer that each test may spoil."""
    made = Place(SMOKE, tmp_path_factory.mktemp("equality"), lambda _: None, lambda version, tell: FakePeer())
    yield made
    made.close()


def test_over_the_wire_ours_is_what_the_profile_and_peers_say(place: Place) -> None:
    lines = equality.run(place).lines
    assert [(line.state, line.ours) for line in lines] == [("met", "4 results equal")] * 2
    assert place.found == {BEFORE: {"TransferQueue": "0.0"}, SEED: {"TransferQueue": "0.0"}}


def test_a_peer_that_says_something_else_ends_it(place: Place) -> None:
    peer = place.peer(SEED)
    assert isinstance(peer, FakePeer)
    peer.spoil = SPOILT["fields"]
    with pytest.raises(ResultsDiffer, match=r"^TransferQueue 0\.1\.11 and ours differ at fields"):
        equality.run(place)


def test_a_peer_that_is_missing_is_named(tmp_path: Path) -> None:
    place = Place(TINY, tmp_path, lambda _: None, no_peer)
    assert place.peer(SEED) is None
    line = equality._line(place, SEED, 0)
    assert line.state == "not measured"
    assert line.note == "TransferQueue 0.1.11 cannot be installed: no network"
