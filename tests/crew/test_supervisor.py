"""The driver of a chaos run: drawn processes die and resume their leases; any other death fails the step."""

import asyncio
import os
from pathlib import Path

import httpx
import pytest

from crew.deaths import Death
from crew.desk import Desk
from crew.leased import Badge
from crew.members import CrewFailed, Place, Role, assemble, crew
from crew.storage import StorageAddress
from crew.supervisor import Supervisor


async def holder(desk: Desk) -> None:
    """Takes the one row and is killed over it; in its second life it accepts it."""
    claim = await desk.client.claim("held", "t", ["x"], 1, lease_s=600, worker="holder", wait_s=60)
    desk.advance("rollout", 1)
    if claim.attempts == [1]:
        await asyncio.Event().wait()
    await desk.client.ack(str(claim.claim_id), str(claim.token))


async def dying(_: Desk) -> None:
    os._exit(7)


def supervised(place: Place, role: Role, folder: Path, *deaths: Death) -> Supervisor:
    roles, badges = {"holder": role}, {"holder": Badge("holder", folder)}
    with crew(roles, place) as members:
        assemble(members)
        found = Supervisor(
            members,
            roles,
            badges,
            {"holder": "rollout"},
            place,
            None,
            list(deaths),
            lambda *_: None,  # type: ignore[arg-type]
        )
        found.conduct()
    return found


@pytest.fixture
def place(server_url: str, memory_address: StorageAddress) -> Place:
    return Place(server_url, memory_address, patience_s=60)


def test_who_was_drawn_dies_and_another_life_gets_what_it_held(place: Place, tmp_path: Path) -> None:
    with httpx.Client(base_url=f"{place.url}/v1/partitions/held") as http:
        write = {"keys": ["a"], "create": True, "field_schema": {"x": {"kind": "object"}}}
        http.post("/production", json=write).raise_for_status()
        driver = supervised(place, holder, tmp_path, Death("rollout", 1, "rollout", 0.5, True))
        counts = http.get("/tasks/t/consumption?counts_only=true").json()
    assert driver.died == ["holder (reported)"]
    assert len(driver.members) == 2
    assert (counts["consumed"], counts["leased"]) == (1, 0)


def test_a_death_that_was_not_drawn_fails_the_step(place: Place, tmp_path: Path) -> None:
    with pytest.raises(CrewFailed, match="holder ended with exit status 7"):
        supervised(place, dying, tmp_path)
