"""A job under Ray loses a rollout worker, a storage unit, the service: each answer is still trained exactly once.

Nothing hangs longer than its timeout, and the account of the journal adds up: per task, all samples ever allocated are
waiting, leased, consumed, dead, clearing or cleared.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.peers.ray_peer import RayPeer
from tests.transferqueue.both import command, wanted

from .service import Service

pytestmark = wanted
KEYS = [f"k{number}" for number in range(24)]
ANSWER_S = 240.0
STORAGE_S = 2
ENVIRONMENT = {
    "TQ_SIMPLE_STORAGE_SEND_RECV_TIMEOUT": str(STORAGE_S),
    "TQ_SIMPLE_STORAGE_MAX_ATTEMPTS": "1",
    "TQ_SIMPLE_STORAGE_PROBE_TIMEOUT": "1",
}


class Job(RayPeer):
    """A running child.py: `ask` calls one of its verbs."""

    def ask(self, do: str, **given: object) -> dict[str, Any]:
        """Raises PeerFailed."""
        return self._ask(do=do, **given)


@pytest.fixture(scope="module")
def ray() -> Iterator[Job]:
    """Ray, for all tests of this file."""
    with Job("the job", command("tests.transferqueue.chaos.child"), ANSWER_S, ENVIRONMENT) as job:
        job.ask("ray")
        yield job


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    started = Service(tmp_path)
    yield started
    started.end()


@pytest.fixture
def job(ray: Job, service: Service) -> Iterator[Job]:
    """TransferQueue on the service."""
    ray.ask("begin", url=service.url)
    yield ray
    ray.ask("end")


def account(service: Service) -> dict[str, int]:
    """Of the task, once the service has ended."""
    service.end()
    names = ("allocated", "waiting", "leased", "consumed", "dead", "clearing", "cleared")
    counts = dict(zip(names, service.audit().account("train", "actor_update"), strict=True))
    return {name: count for name, count in counts.items() if count}


def test_a_rollout_worker_dies_between_the_bytes_and_their_report(job: Job, service: Service) -> None:
    """Its fifth answer is stored, but nobody was told: another worker writes it again, under the same key."""
    rolled = job.ask("roll", keys=KEYS, dies_at=5)
    share = KEYS[::2]
    assert rolled == {"dead": [0], "left": share[4:], "known": sorted({*KEYS} - {*share[5:]})}
    first = job.ask("train", most=len(KEYS))
    assert sorted(first["trained"]) == sorted({*KEYS} - {*share[4:]})
    assert job.ask("roll", keys=rolled["left"], workers=1)["left"] == []
    then = job.ask("train", most=len(KEYS))
    assert (sorted(then["trained"]), then["lost"]) == (sorted(share[4:]), {})
    assert account(service) == {"allocated": 24, "consumed": 24}


def test_a_storage_unit_dies_with_the_bytes_of_half_of_the_answers(job: Job, service: Service) -> None:
    """Reads of its answers fail in time; they stay hidden until new units are there, and are answered again."""
    job.ask("roll", keys=KEYS)
    first = job.ask("train", most=8)["trained"]
    job.ask("kill_unit", number=1)
    second = job.ask("train", most=len(KEYS) - 8)
    lost = [*second["lost"]]
    assert (len(first), len(second["trained"]), len(lost)) == (8, 8, 8)
    assert job.ask("clear", keys=lost)["told"] == sorted({*KEYS} - {*lost})
    job.ask("end")
    job.ask("begin", url=service.url)
    assert job.ask("finish")["told"] == 1
    assert job.ask("roll", keys=lost, workers=1)["left"] == []
    third = job.ask("train", most=len(KEYS))
    assert sorted(first + second["trained"] + third["trained"]) == sorted(KEYS)
    assert job.ask("longest")["told"] < 10 * STORAGE_S
    assert account(service) == {"allocated": 32, "consumed": 24, "cleared": 8}


def test_the_service_dies_under_puts_claims_and_a_clear(job: Job, service: Service) -> None:
    """Each call that was cut is sent again to its next life, and is done once."""
    service.dies_at("before-fsync:20")
    assert job.ask("roll", keys=KEYS)["left"] == []
    assert service.died() == ["before-fsync:20"]
    service.dies_at("after-append:2")
    trained = job.ask("train", most=len(KEYS))
    assert sorted(trained["trained"]) == sorted(KEYS)
    assert service.died()[1:] == ["after-append:2"]
    service.dies_at("before-reply:1")
    assert job.ask("clear", keys=KEYS)["told"] == []
    assert service.died()[2:] == ["before-reply:1"]
    assert account(service) == {"allocated": 24, "cleared": 24}
