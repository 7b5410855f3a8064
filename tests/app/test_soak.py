"""Steps of training, one after the other, every call keyed and everything deleted: what that leaves behind is bounded.

TEST_LONG=1: 2,000 steps of 512 x 28 on a server as it is run. Else few and small ones, with small bounds.
"""

import asyncio
import os
import time
from pathlib import Path

import httpx

from batchmeta import AsyncClient
from bench.soak import STEP, Sizes, Soak, Standing, standing
from tests.conftest import DEADLINE_S, ROOT, ServerProcess
from tests.crash.lives import SITE

LONG = os.environ.get("TEST_LONG") == "1"
STEPS, SIZES = (2000, STEP) if LONG else (64, Sizes(rows=64, batch=16))
SEGMENT_BYTES, KEPT_BYTES = 400_000, 100_000
SMALL = {"PYTHONPATH": f"{SITE}:{ROOT}", "FAILPOINT_SEGMENT_BYTES": str(SEGMENT_BYTES)}
FLAGS = () if LONG else ("--kept-bytes", str(KEPT_BYTES))
PARTS = 4
MIB = 2**20
MOST_MEMORY = 64 * MIB if LONG else 32 * MIB
MOST_SNAPSHOT = 40 * MIB if LONG else 200_000  # which a table of replies without a bound would exceed


def server(journal: Path) -> ServerProcess:
    return ServerProcess("--journal", f"file://{journal}", *FLAGS, env={} if LONG else SMALL)


async def lived(service: ServerProcess, journal: Path) -> list[Standing]:
    """All steps, in PARTS parts; how the service stood before the first and after each."""
    pid = service.process.pid
    stood = [standing(pid, journal)]
    async with AsyncClient(service.url, timeout=DEADLINE_S) as client:
        soak = Soak(client, SIZES)
        for _ in range(PARTS):
            await soak.run(STEPS // PARTS)
            stood.append(standing(pid, journal))
    return stood


def newest_snapshot(journal: Path) -> int:
    """Its bytes, once all closed segments are in it: a process of its own makes it, and takes its time."""
    deadline = time.monotonic() + DEADLINE_S
    while not is_settled(journal):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return max(journal.glob("*.snapshot")).stat().st_size


def is_settled(journal: Path) -> bool:
    snapshots, segments = (sorted(path.name for path in journal.glob(f"*.{kind}")) for kind in ("snapshot", "segment"))
    return (
        len(snapshots) == 2 and int(snapshots[-1][:20]) + 1 == int(segments[-1][:20]) and not any(journal.glob("*.new"))
    )


def test_steps_leave_memory_disk_and_descriptors_as_they_were(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    service = server(journal)
    try:
        start, _, middle, _, end = stood = asyncio.run(lived(service, journal))
        assert end.resident - start.resident <= MOST_MEMORY, stood
        assert end.descriptors <= middle.descriptors + 4, stood  # a maker of snapshots may be at work
        assert newest_snapshot(journal) <= MOST_SNAPSHOT, stood
        if LONG:
            assert max(each.disk for each in stood) <= 128 * MIB, stood
            first, second = (later.cpu_s - earlier.cpu_s for earlier, later in ((start, middle), (middle, end)))
            assert second <= 1.25 * first, stood
            assert end.resident - middle.resident <= MOST_MEMORY / 3, stood
    finally:
        service.kill()
    again = server(journal)
    try:
        assert httpx.get(f"{again.url}/v1/partitions").json()["partitions"] == []
    finally:
        assert again.stop() == 0
