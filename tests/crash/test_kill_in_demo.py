"""SIGKILL while the demo's own rollout code writes: each answer it saw acknowledged is there afterwards, whole."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from batchmeta import AsyncClient
from batchmeta.errors import ConnectionLost
from demo.desk import Desk, write
from demo.memory import memory_storage
from demo.samples import ANSWER_FIELDS, ANSWERS, Sample, Step, make_answer, make_prompts
from demo.storage import connect
from demo.values import Row, unpack
from tests.conftest import ServerProcess

BEFORE_THE_KILL = 30


async def write_until_killed(server: ServerProcess, desk: Desk, step: Step) -> dict[str, int]:
    """Answers one key at a time, by eight coroutines; the indexes of those acknowledged, by key."""
    acknowledged: dict[str, int] = {}
    prompts: list[Row] = [sample.values for sample in make_prompts(step)]
    todo = iter([(prompt, index) for prompt in prompts for index in range(step.answers)])

    async def writer() -> None:
        for prompt, index in todo:
            answer: Sample = make_answer(step, prompt, index)
            (acknowledged[answer.key],) = await write(desk, desk.tally("rollout"), ANSWERS, [answer])
            if len(acknowledged) == BEFORE_THE_KILL:
                server.process.kill()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(8):
                group.create_task(writer())
    except* ConnectionLost:
        pass
    return acknowledged


@pytest.mark.asyncio
async def test_what_the_rollout_saw_acknowledged_is_there_after_kill_9(tmp_path: Path) -> None:
    journal = ("--journal", f"file://{tmp_path}/journal")
    step = Step(prompts=8, answers=8, seed=7, max_len=64)
    server = ServerProcess(*journal)
    with memory_storage(tmp_path / "storage") as address:
        async with AsyncClient(server.url) as client:
            storage = connect(address)
            acknowledged = await write_until_killed(server, Desk(client, storage, lambda *_: None), step)
        server.kill()
        assert BEFORE_THE_KILL <= len(acknowledged) < step.samples

        again = ServerProcess(*journal)
        try:
            async with AsyncClient(again.url) as client:
                batch = await client.read(ANSWERS, keys=sorted(acknowledged), fields=ANSWER_FIELDS, strict=True)
            assert batch.is_ready
            assert list(batch.global_indexes) == [acknowledged[key] for key in sorted(acknowledged)]
            assert all(meta["status"] == "success" for meta in batch.custom_meta or ())
            for row, index in enumerate(batch.global_indexes):
                told = (batch.field_schema or {})["responses"]
                cell = (batch.backend_meta or {})["responses"][row]
                value = unpack(storage.get([f"{index}@responses"])[0], cell)
                assert isinstance(value, np.ndarray)
                assert value.shape == told.shape_of(row)
        finally:
            assert again.stop() == 0
