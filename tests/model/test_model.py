"""The service does what the contract says: random calls, a restart among them, each held against a model of dicts.

After every call: all that can be seen is the model's; the supplies equal a fresh scan; a call that left all as it was
made no revision; a refused one left every byte as it was; a restart brings back the same; the journal keeps the laws of
delivery; states go only where core.state.transitions says. The same machine drives the engine and the HTTP routes.
TEST_LONG=1: more and longer runs, each time others; TEST_SEED=n: those of that seed.
"""

import os
import secrets
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, run_state_machine_as_test

import core.apply.partitions
import core.apply.table
import core.state.clears
import core.state.leases
import core.state.partition
import core.state.supply.supplies
from core.device import CPU
from tests.core.world import device_tested
from tests.histories.transitions import Watch, table
from tests.model.model import MAX_DELETED
from tests.model.plain import REMEMBERED
from tests.model.rules_checkpoints import Restoring
from tests.model.rules_claims import Claiming
from tests.model.rules_clears import Clearing
from tests.model.rules_leases import Leasing
from tests.model.rules_production import Producing
from tests.model.service import Direct, OverHttp

LONG = os.environ.get("TEST_LONG") == "1"
SEED = int(os.environ.get("TEST_SEED") or (secrets.randbelow(10**6) if LONG else 0))  # 0: the same runs each time
ON_CPU = device_tested() is CPU


class EngineAgainstModel(Producing, Clearing, Claiming, Leasing, Restoring):
    """Every rule; calls are core's operations."""

    form = Direct

    @initialize(sizes=st.lists(st.integers(1, 3), min_size=2, max_size=4), data=st.data())
    def begin(self, sizes: list[int], data: st.DataObject) -> None:
        if data.draw(st.booleans()):
            self.put("a", data)
        for number, rows in enumerate(sizes):
            self.add_group("a", data, rows, number)
        self.produce_for_rows_that_are_there("a", data)
        if data.draw(st.booleans()):
            self.claim_again("a", data)


class HttpAgainstModel(EngineAgainstModel):
    """The same; calls are requests."""

    form = OverHttp


def run(machine: type[EngineAgainstModel], examples: int) -> None:
    run_state_machine_as_test(
        seed(SEED)(machine) if SEED else machine,
        settings=settings(
            max_examples=examples * 6 if LONG else examples,
            stateful_step_count=60 if LONG else 30,
            deadline=None,
            derandomize=not SEED,
            phases=[phase for phase in Phase if ON_CPU or phase is not Phase.shrink],  # slow there, and the same here
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.fixture(autouse=True)
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing happens to a state that is not in the tables."""
    watch = Watch()
    monkeypatch.setattr(core.apply.table, "EVENTS", watch.events())
    yield
    assert watch.seen - table() == set()
    assert watch.unlike == []


@pytest.fixture(autouse=True)
def seed_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """With a failure, and also where there is none."""
    if SEED:
        sys.stdout.write(f"TEST_SEED={SEED}\n")
        with capsys.disabled():
            sys.stdout.write(f" TEST_SEED={SEED} ")


@pytest.fixture(autouse=True)
def short_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept of the past is forgotten within a run."""
    monkeypatch.setattr(core.apply.partitions, "MAX_DELETED", MAX_DELETED)
    monkeypatch.setattr(core.state.leases, "REMEMBERED", REMEMBERED)
    monkeypatch.setattr(core.state.clears, "REMEMBERED", REMEMBERED)
    monkeypatch.setattr(core.state.partition, "GAPS", 2)
    monkeypatch.setattr(core.state.supply.supplies, "MAX_RECENT", 3)


def test_the_engine_is_the_model() -> None:
    run(EngineAgainstModel, 60 if ON_CPU else 20)


@pytest.mark.skipif(not ON_CPU, reason="the routes know nothing of devices")
def test_the_routes_are_the_model() -> None:
    run(HttpAgainstModel, 20)
