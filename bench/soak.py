"""What a long training run does to a service: whole steps, one after the other, every call keyed, everything deleted.

The bench and the tests run the same loops, and look at the service in the same way.
"""

import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path

from batchmeta import AsyncClient

from .profile import FIELDS, Json, make
from .worker import WrongReply, arguments

TASKS = ("ref", "critic", "actor")
LOOPS = 4


@dataclass(frozen=True, slots=True)
class Sizes:
    """`rows` of a step, each claimed by every task, `batch` at a time."""

    rows: int = 512
    batch: int = 64


STEP = Sizes()


@dataclass(frozen=True, slots=True)
class Standing:
    """What a service holds: memory and disk in bytes, how many descriptors; and the CPU seconds it took so far."""

    resident: int
    disk: int
    descriptors: int
    cpu_s: float


def standing(pid: int, journal: Path) -> Standing:
    """Of this process and this folder, now."""
    process = Path(f"/proc/{pid}")
    pages = int((process / "statm").read_text().split()[1])
    ticks = sum(map(int, (process / "stat").read_text().rpartition(")")[2].split()[11:13]))  # utime, stime
    return Standing(
        pages * os.sysconf("SC_PAGE_SIZE"),
        sum(map(_size, journal.iterdir())),
        len(list((process / "fd").iterdir())),
        ticks / os.sysconf("SC_CLK_TCK"),
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # a file of the maker of snapshots, renamed meanwhile
        return 0


class Soak:
    """Steps of `LOOPS` loops at once: produce, claim, ack, clear, delete."""

    def __init__(self, client: AsyncClient, sizes: Sizes = STEP) -> None:
        self._client, self._sizes = client, sizes
        profile = make(sizes.rows)
        self._keys = profile.keys
        self._body: Json = arguments(profile.body(0, sizes.rows))
        self._made = 0

    async def run(self, steps: int) -> list[float]:
        """So many more steps; the seconds that each took."""
        left = iter(range(steps))

        async def loop() -> list[float]:
            return [await self._timed_step() for _ in left]

        return [took for found in await asyncio.gather(*(loop() for _ in range(LOOPS))) for took in found]

    async def _timed_step(self) -> float:
        began, partition = time.perf_counter(), f"soak@{self._made}"
        self._made += 1
        await self._step(partition)
        return time.perf_counter() - began

    async def _step(self, partition: str) -> None:
        await self._client.produce(partition, keys=self._keys, create=True, **self._body)
        for task in TASKS:
            for _ in range(0, self._sizes.rows, self._sizes.batch):
                await self._claim(partition, task)
        clear = await self._client.plan_clear(partition, all_rows=True)
        await self._client.commit_clear(clear.clear_id)
        await self._client.delete_partition(partition)

    async def _claim(self, partition: str, task: str) -> None:
        batch = self._sizes.batch
        claim = await self._client.claim(partition, task, FIELDS, batch, lease_s=60.0, compact=True)
        if claim.batch.size != batch or claim.claim_id is None or claim.token is None:
            raise WrongReply(f"a claim of {batch} got {claim.batch.size} rows")
        await self._client.ack(claim.claim_id, claim.token)
