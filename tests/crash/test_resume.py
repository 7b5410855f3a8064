"""Rounds of save, kill and restore against one training run: in the end each sample was trained exactly as often as in
a run in which nothing ever failed. TEST_SEED=n: another run; TEST_LONG=1: 200 rounds of each.

In process the kill is a power cut at some sync, with what was not synced lost; the real one is SIGKILL at some moment.
"""

import asyncio
import os
import random
import threading
import time
from pathlib import Path

import pytest

from batchmeta import AsyncClient, ConnectionLost, JournalUnavailable, NotReady, Retries
from core.engine import Engine
from core.errors import Refused
from core.journal import BEFORE_FIRST, FileJournal, JournalError
from core.runtime.compact import compact
from core.runtime.executor import Executor
from tests.conftest import ServerProcess
from tests.contracts.journal_disks import ForgetfulDisk
from tests.crash.resuming import NAME, Run
from tests.model.asgi import Application

LONG = os.environ.get("TEST_LONG") == "1"
SEED = int(os.environ.get("TEST_SEED", "7"))
ROUNDS = 200 if LONG else 40
REAL_ROUNDS = 200 if LONG else 2
LONGEST_S = 2.0
ONCE = Retries(most=0)
GONE = (ConnectionLost, JournalUnavailable, NotReady, JournalError, Refused)


class InProcess:
    """The real routes over a journal whose disk forgets what was not synced when its power goes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._application: Application | None = None

    async def live(self, cut_at: int | None) -> AsyncClient:
        """A life that ends at this sync, if at any."""
        disk = ForgetfulDisk(cut_at)
        self.journal = FileJournal(self.folder / "journal", segment_bytes=20_000, disk=disk.disk(), log=lambda _: None)
        self.journal.open()
        self._compact()
        executor = Executor(Engine(time.monotonic, time.time), self.journal, lambda _: None)
        if self._application is None:
            self._application = Application(executor, "--checkpoints", str(self.folder / "checkpoints"))
        self._application.serve(executor)
        executor.start()
        await executor.cut()  # it is there, and a part of the journal is closed
        return AsyncClient("http://localhost", retries=ONCE, transport=self._application.transport())

    def _compact(self) -> None:
        """As the process beside a service does."""
        if self.journal.closed() != BEFORE_FIRST:
            compact(self.folder / "journal", self.journal.closed())
            self.journal.tidy()

    def die(self) -> None:
        """Nothing more is written: what is open is let go."""
        self.journal.close()


async def train(folder: Path, run: Run, rounds: int, is_restored: bool) -> None:
    """`rounds` lives that are cut short, and one in which the run comes to its end."""
    service = InProcess(folder)
    for number in range(rounds + 1):
        is_last = number == rounds
        cut_at = None if is_last else run.chance.randint(4, 40)
        try:
            client = await service.live(cut_at)
            if not run.saved:
                await client.put_partition(NAME)
                await run.save(client)
            elif is_restored:
                await run.go_back(client)
            while not run.is_over:
                await run.step(client)
                if run.chance.random() < 0.3:
                    await run.save(client)
            assert is_last, "the run is too short for so many rounds"
        except GONE:
            assert not is_last
        finally:
            service.die()


def test_each_sample_is_trained_once_over_power_cuts(tmp_path: Path) -> None:
    run = Run(ROUNDS * 3, random.Random(SEED))
    asyncio.run(train(tmp_path, run, ROUNDS, is_restored=True))
    assert run.account() == run.meant(), f"seed {SEED}"
    assert run.forgotten > ROUNDS / 2  # else nothing was at stake


def test_without_the_restore_it_would_not_be_so(tmp_path: Path) -> None:
    """The planted fault: only the trainer goes back."""
    run = Run(40, random.Random(SEED), clears=0)

    async def and_forget() -> None:
        service = InProcess(tmp_path)
        client = await service.live(None)
        await client.put_partition(NAME)
        await run.save(client)
        while run.progress.trained == []:
            await run.step(client)
        run.progress = run.saved["save-1"]  # the service does not
        for _ in range(200):
            await run.step(client)
        service.die()

    asyncio.run(and_forget())
    assert run.account() != run.meant()


class Killed:
    """A real server, and a moment in its life."""

    def __init__(self, folder: Path, seconds: float | None) -> None:
        self.server = ServerProcess("--journal", f"file://{folder}/journal")
        self._timer = None if seconds is None else threading.Timer(seconds, self.server.process.kill)

    def __enter__(self) -> str:
        if self._timer is not None:
            self._timer.start()
        return self.server.url

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.server.kill()


async def one_life(url: str, run: Run, is_killed: bool) -> None:
    """Until the run is over, or the server is. In a life that is to be killed the run has always one more prompt."""
    async with AsyncClient(url, retries=ONCE) as client:
        if not run.saved:
            await client.put_partition(NAME)
            await run.save(client)
        else:
            await run.go_back(client)
        while is_killed or not run.is_over:
            run.prompts += run.is_over
            await run.step(client)
            if run.chance.random() < 0.05:
                await run.save(client)


def test_each_sample_is_trained_once_over_kills_of_a_real_server(tmp_path: Path) -> None:
    run = Run(40 + REAL_ROUNDS * 4, random.Random(SEED))
    with Killed(tmp_path, None) as url:
        asyncio.run(one_save(url, run))
    for seconds in [run.chance.uniform(0.05, LONGEST_S) for _ in range(REAL_ROUNDS)]:
        with Killed(tmp_path, seconds) as url, pytest.raises(GONE):
            asyncio.run(one_life(url, run, is_killed=True))
    with Killed(tmp_path, None) as url:
        asyncio.run(one_life(url, run, is_killed=False))
    assert run.account() == run.meant(), f"seed {SEED}"
    assert run.forgotten


async def one_save(url: str, run: Run) -> None:
    async with AsyncClient(url, retries=ONCE) as client:
        await client.put_partition(NAME)
        await run.save(client)
