"""SIGKILL while the demo's own rollout code writes: each answer it saw acknowledged is there afterwards, whole."""

import asyncio
from functools import cache
from pathlib import Path

import pytest

from batchmeta import AsyncClient, Retries
from batchmeta.errors import ConnectionLost
from crew.desk import INCLUDE, Desk, Sample, fetch, write
from crew.memory import memory_storage
from crew.storage import connect
from crew.values import pack
from demo.samples import ANSWER_FIELDS, ANSWERS, FIXED_SHAPE, Step, make_answer, make_prompts
from tests.conftest import ServerProcess

BEFORE_THE_KILL = 30
STEP = Step(prompts=8, answers=8, seed=7, max_len=64)


@cache
def all_answers() -> dict[str, Sample]:
    prompts = [sample.values for sample in make_prompts(STEP)]
    answers = [make_answer(STEP, prompt, index) for prompt in prompts for index in range(STEP.answers)]
    return {answer.key: answer for answer in answers}


async def write_until_killed(server: ServerProcess, desk: Desk) -> dict[str, int]:
    """Answers one key at a time, by eight coroutines; the indexes of those acknowledged, by key."""
    acknowledged: dict[str, int] = {}
    todo = iter(all_answers().values())

    async def writer() -> None:
        for answer in todo:
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


async def check_acknowledged(desk: Desk, acknowledged: dict[str, int]) -> None:
    """Index, group, metas and, through them, every byte of the answers are what was written."""
    written = [all_answers()[key] for key in sorted(acknowledged)]
    batch = await desk.client.read(
        ANSWERS, keys=sorted(acknowledged), fields=ANSWER_FIELDS, include=INCLUDE, strict=True
    )
    assert batch.is_ready
    assert list(batch.global_indexes) == [acknowledged[answer.key] for answer in written]
    assert batch.keys == [answer.key for answer in written]
    assert batch.group_ids == [answer.group_id for answer in written]
    assert batch.custom_meta == [answer.custom_meta for answer in written]
    for name, values in fetch(desk, desk.tally("check"), batch, ANSWER_FIELDS).items():
        assert [pack(value) for value in values] == [pack(answer.values[name]) for answer in written]


async def check_the_others(client: AsyncClient, acknowledged: dict[str, int]) -> None:
    """An answer in flight is there with all its fields, or inserted only, or not there."""
    others = sorted(set(all_answers()) - set(acknowledged))
    batch = await client.read(ANSWERS, keys=others, fields=ANSWER_FIELDS, include=["field_status", "custom_meta"])
    assert batch.field_status is not None
    for row, meta in enumerate(batch.custom_meta or ()):
        assert {column[row] for column in batch.field_status.values()} == {1 if meta else 0}


@pytest.mark.asyncio
async def test_what_the_rollout_saw_acknowledged_is_there_after_kill_9(tmp_path: Path) -> None:
    journal = ("--journal", f"file://{tmp_path}/journal")
    server = ServerProcess(*journal)
    with memory_storage(tmp_path / "storage") as address:
        storage = connect(address)
        async with AsyncClient(server.url, retries=Retries(most=2)) as client:
            acknowledged = await write_until_killed(server, Desk(client, storage, lambda *_: None, FIXED_SHAPE))
        server.kill()
        assert BEFORE_THE_KILL <= len(acknowledged) < STEP.samples

        again = ServerProcess(*journal)
        try:
            async with AsyncClient(again.url) as client:
                desk = Desk(client, storage, lambda *_: None, FIXED_SHAPE)
                await check_acknowledged(desk, acknowledged)
                await check_the_others(client, acknowledged)
                # Who got no answer writes again; the rows of the others keep their indexes.
                rewritten = await write(desk, desk.tally("again"), ANSWERS, list(all_answers().values()))
            assert dict(zip(all_answers(), rewritten, strict=True)).items() >= acknowledged.items()
            assert len(set(rewritten)) == STEP.samples
        finally:
            assert again.stop() == 0
