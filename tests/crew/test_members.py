"""The driver notices a process that dies or stands still, and leaves none behind."""

import asyncio
import os
from pathlib import Path

import pytest

from crew import members as members_module
from crew.desk import Desk
from crew.members import CrewFailed, Place, Role, assemble, conduct, crew
from crew.storage import StorageAddress


async def diligent(desk: Desk) -> None:
    desk.advance("bar", 2)
    desk.tally("task").calls = 5


async def dying(_: Desk) -> None:
    os._exit(7)


async def idle(_: Desk) -> None:
    await asyncio.Event().wait()


def conducted(place: Place, **roles: Role) -> tuple[list[tuple[str, int]], list[int]]:
    """The bars moved and the calls of each tally; every process is gone afterwards."""
    moved: list[tuple[str, int]] = []
    pids: list[int] = []
    try:
        with crew(roles, place) as members:
            pids = [member.process.pid or 0 for member in members]
            assemble(members)
            tallies = conduct(members, lambda bar, count: moved.append((bar, count)))
    finally:
        assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    return moved, [tally.calls for tally in tallies]


@pytest.fixture
def place(server_url: str, memory_address: StorageAddress) -> Place:
    return Place(server_url, memory_address)


def test_progress_and_tallies_of_all_processes_arrive(place: Place) -> None:
    assert conducted(place, one=diligent, two=diligent) == ([("bar", 2), ("bar", 2)], [5, 5])


def test_a_process_that_dies_fails_the_step_and_takes_the_others_with_it(place: Place) -> None:
    with pytest.raises(CrewFailed, match="second ended with exit status 7"):
        conducted(place, first=idle, second=dying)


def test_a_step_in_which_nothing_moves_is_given_up(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members_module, "STALLED_S", 0.2)

    with pytest.raises(CrewFailed, match=r"nothing moved for 0\.2 s; still at work: sleeper"):
        conducted(place, sleeper=idle)
