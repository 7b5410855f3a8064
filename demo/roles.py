"""The five kinds of process of a GRPO step, each a coroutine over its desk. They know the service, never each other."""

from asyncio import TaskGroup
from collections.abc import Mapping

import numpy as np

from batchmeta import BatchMeta
from crew.desk import Desk, Want, add, batches, fetch, write
from crew.values import Columns, DamagedValue, Row

from .samples import ANSWER_FIELDS, ANSWERS, COMPUTED, PROMPT_FIELDS, PROMPTS, Step, make_answer, make_prompts
from .text import decode, log_probs

TRAINER, ROLLOUT, ACTOR = "trainer", "rollout", "actor_update"
# Which tasks read which partition: each must consume every sample of it once.
TASKS: Mapping[str, tuple[str, ...]] = {PROMPTS: (ROLLOUT,), ANSWERS: (*COMPUTED, ACTOR)}

PROMPTS_PER_WRITE = 16
PROMPTS_AT_ONCE = 2
RANK_BATCH = 16
RANK_READS = ("responses", "response_mask", "rollout_log_probs")
TRAINED = (*ANSWER_FIELDS, *COMPUTED.values())


async def trainer(desk: Desk, step: Step) -> None:
    """Put the prompts, a few at a time, so that the rollout starts with the first."""
    prompts = make_prompts(step)
    for start in range(0, len(prompts), PROMPTS_PER_WRITE):
        part = prompts[start : start + PROMPTS_PER_WRITE]
        await write(desk, desk.tally(TRAINER), PROMPTS, part)
        desk.advance(TRAINER, len(part))


async def rollout(desk: Desk, step: Step) -> None:
    """Take prompts one by one and write their answers, each answer by a coroutine of its own."""
    async with TaskGroup() as group:
        for _ in range(PROMPTS_AT_ONCE):
            group.create_task(_roll_out_prompts(desk, step))


async def _roll_out_prompts(desk: Desk, step: Step) -> None:
    async for batch in batches(desk, desk.tally(ROLLOUT), Want(PROMPTS, PROMPT_FIELDS, 1, 1)):
        await roll_out(desk, step, batch)
        desk.advance(ROLLOUT, step.answers)


async def roll_out(desk: Desk, step: Step, batch: BatchMeta) -> None:
    """Write the answers to one prompt, each by a coroutine of its own. Done again, it writes the same ones again."""
    tally = desk.tally(ROLLOUT)
    columns = fetch(desk, tally, batch, PROMPT_FIELDS)
    prompt = {name: values[0] for name, values in columns.items()}
    _check_prompt(prompt)
    async with TaskGroup() as group:
        for index in range(step.answers):
            group.create_task(write(desk, tally, ANSWERS, [make_answer(step, prompt, index)]))


async def ranks(desk: Desk) -> None:
    """Both rank tasks: this process shares the samples of each with the other rank processes."""
    async with TaskGroup() as group:
        for task in COMPUTED:
            group.create_task(_compute(desk, task))


async def _compute(desk: Desk, task: str) -> None:
    async for batch in batches(desk, desk.tally(task), Want(ANSWERS, RANK_READS, 1, RANK_BATCH)):
        await compute(desk, task, batch)
        desk.advance(task, len(batch))


async def compute(desk: Desk, task: str, batch: BatchMeta) -> None:
    """Add the field of a rank task to the samples of a batch."""
    tally = desk.tally(task)
    columns = fetch(desk, tally, batch, RANK_READS)
    computed = [log_probs(task, ids) for ids in columns["responses"]]
    await add(desk, tally, batch, {COMPUTED[task]: computed})


async def actor(desk: Desk, step: Step) -> None:
    """Take whole groups, as soon as every field of all their answers is there, and read everything."""
    async for batch in batches(desk, desk.tally(ACTOR), whole_groups(step)):
        train(desk, batch)
        desk.advance(ACTOR, len(batch))


def whole_groups(step: Step) -> Want:
    """What the actor asks for."""
    sampler = {"name": "grpo_group", "n_samples_per_prompt": step.answers}
    return Want(ANSWERS, TRAINED, step.answers, step.answers, sampler)


def train(desk: Desk, batch: BatchMeta) -> None:
    """Read every field of a group and check that they belong together. Raises DamagedValue, MissingBytes."""
    _check_group(batch, fetch(desk, desk.tally(ACTOR), batch, TRAINED))


def _check_prompt(prompt: Row) -> None:
    if decode(prompt["prompts"]) != prompt["raw_prompt"][0]["content"]:
        raise DamagedValue(f"prompt {prompt['uid']}: its tokens are not its text")


def _check_group(batch: BatchMeta, columns: Columns) -> None:
    """A whole group of one prompt, and in each row fields that belong to one another."""
    groups = set(batch.group_ids or ())
    if len(groups) != 1 or set(columns["uid"]) != groups:
        raise DamagedValue(f"a group that is not of one prompt: {groups}")
    for row in range(len(batch)):
        _check_row({name: values[row] for name, values in columns.items()})


def _check_row(row: Row) -> None:
    made_of = np.concatenate([row["prompts"], row["responses"]])
    if not np.array_equal(row["input_ids"], made_of):
        raise DamagedValue(f"an answer of {row['uid']}: input_ids are not prompt and response")
    for task, name in COMPUTED.items():
        if not np.array_equal(row[name], log_probs(task, row["responses"])):
            raise DamagedValue(f"an answer of {row['uid']}: {name} is another sample's")
