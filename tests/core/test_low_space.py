"""A disk that fills up: changes are refused before anything is applied, reads go on, and it recovers by itself.

An append whose outcome is unknown is settled by reading back.
"""

import logging

import pytest

from core.engine import Engine
from core.errors import JournalUnavailable
from core.journal import Appended, EntryId, Outcome
from core.operations.claim import ClaimRequest, claim_now
from core.reading.batch import View
from core.samplers import Sequential
from tests.core.running import WatchedJournal, grow, running
from tests.core.world import add, look

pytestmark = pytest.mark.asyncio
LEASE_S = 10.0


def lease(engine: Engine) -> None:
    claim_now(engine, "p", ClaimRequest("t", ("x",), 1, 1, 0.0, Sequential(), View(), lease_s=LEASE_S))


def leased(engine: Engine) -> int:
    return engine.partitions["p"].tasks["t"].leased


async def test_changes_are_refused_until_there_is_room_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    journal = WatchedJournal()
    async with running(journal) as service:
        await service.do(add, "p", 2)
        journal.room = False
        for _ in range(2):
            with pytest.raises(JournalUnavailable, match="low on disk space"):
                await service.do(add, "p")
        assert (await service.do(look, "p")).global_indexes.tolist() == [0, 1]
        assert (service.engine.revision, service.engine.next_index, len(journal.payloads)) == (1, 2, 1)
        journal.room = True
        assert await service.do(add, "p") == [2]
        assert service.fatal == []
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2


async def test_a_waiting_claim_goes_on_waiting_and_is_served_once_there_is_room() -> None:
    journal = WatchedJournal()
    async with running(journal) as service:
        waiting = service.claim()
        await service.settle()
        journal.room = False
        with pytest.raises(JournalUnavailable):
            await service.do(grow, "p")
        assert not waiting.done()
        journal.room = True
        await service.do(grow, "p")
        assert await waiting == [0]


async def test_a_lease_whose_time_is_up_ends_once_that_can_be_written() -> None:
    journal = WatchedJournal()
    async with running(journal) as service:
        await service.do(grow, "p")
        await service.do(lease)
        journal.room = False
        await service.advance(LEASE_S + 1)
        assert await service.do(leased) == 1
        journal.room = True
        await service.settle()
        assert await service.do(leased) == 0


class LosesAnswers(WatchedJournal):
    """Each entry is there, and whether it is cannot be said; `other` is found in its place."""

    other: bytes | None = None

    def append(self, expected_last: EntryId, payload: bytes) -> Appended:
        super().append(expected_last, self.other or payload)
        return Appended(Outcome.UNKNOWN, expected_last)


async def test_an_unknown_outcome_is_settled_by_reading_back() -> None:
    journal = LosesAnswers()
    async with running(journal) as service:
        assert await service.do(add, "p") == [0]
        assert await service.do(add, "p") == [1]
        assert service.fatal == []
        assert [entry.payload for entry in journal.read(None)] == journal.payloads


async def test_where_another_entry_is_found_instead_the_service_ends() -> None:
    journal = LosesAnswers()
    journal.other = b"of another writer"
    async with running(journal) as service:
        with pytest.raises(JournalUnavailable):
            await service.do(add, "p")
        assert "unknown" in service.fatal[0]
