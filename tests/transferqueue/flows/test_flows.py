"""Each flow on both planes and both storage backends: what it sees is equal, step by step, except for listed steps."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.cases.equality import difference
from tests.conftest import ServerProcess
from tests.transferqueue.both import wanted

from .differences import DIFFERENCES, split
from .planes import EXPECTED, Plane, plane
from .table import FLOWS

pytestmark = wanted


@pytest.fixture(scope="module", params=list(EXPECTED))
def planes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Plane, Plane]]:
    """Theirs and ours; ours keeps its journal in a folder."""
    folder: Path = tmp_path_factory.mktemp(request.param)
    with ExitStack() as stack:
        theirs = stack.enter_context(plane(request.param, None, folder / "theirs"))
        server = ServerProcess("--journal", (folder / "journal").as_uri())
        stack.callback(server.kill)
        yield request.param, theirs, stack.enter_context(plane(request.param, server.url, folder / "ours"))


@pytest.mark.parametrize("flow", list(FLOWS))
def test_a_flow_sees_the_same_on_both_planes(planes: tuple[str, Plane, Plane], flow: str) -> None:
    backend, *both = planes
    if FLOWS[flow].forks and backend == "Yuanrong":
        pytest.skip("openYuanrong's client hangs now and then in a forked process")
    theirs, ours = split(backend, flow, *(plane.run(flow) for plane in both))
    assert list(theirs) == list(ours)
    assert difference(theirs, ours, flow) is None


def test_each_listed_difference_belongs_to_a_flow() -> None:
    assert {flow for _, flow, _ in DIFFERENCES} <= FLOWS.keys()
