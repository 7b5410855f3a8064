"""What the processes of the training do at a moment that a whole run seldom shows; on a real service."""

from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from batchmeta import AsyncClient
from crew.desk import INCLUDE, Desk, Want, fetch
from crew.files import files_storage
from crew.leased import Badge, take
from crew.ledger import Ledger
from crew.storage import StorageAddress, connect
from examples.grpo import rollout, trainer
from examples.grpo.digits import make_prompt
from examples.grpo.job import ACTOR, ANSWERS, FIXED_SHAPE, INPUT_IDS, PROMPTS, REWARD, ROLLOUT, SCORE, WEIGHTS, Job
from examples.grpo.judging import judge_batch
from examples.grpo.learner import Learner
from examples.grpo.policy import Policy, to_vector
from examples.grpo.progress import SEEN, Progress
from examples.grpo.together import clear_trained
from examples.grpo.weights import Follower, clear_before, publish


@pytest.fixture
def address(tmp_path: Path) -> Iterator[StorageAddress]:
    with files_storage(tmp_path / "storage") as found:
        yield found


@pytest_asyncio.fixture
async def desk(server_url: str, address: StorageAddress) -> AsyncIterator[Desk]:
    async with AsyncClient(server_url) as client:
        for partition in (PROMPTS, ANSWERS, WEIGHTS):
            await client.put_partition(partition)
        yield Desk(client, connect(address), lambda *_: None, FIXED_SHAPE)
        for partition in (PROMPTS, ANSWERS, WEIGHTS):
            await client.delete_partition(partition)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path, seed=5, steps=20, prompts=2, answers=2, digits=3, staleness=1)


async def training(desk: Desk, job: Job, ledger: Ledger) -> trainer.Training:
    job.ledgers.mkdir(exist_ok=True)
    found = trainer.Training(Badge("trainer", job.ledgers), desk, job, ledger, Learner(job))
    await found.begin()
    return found


@pytest_asyncio.fixture
async def begun(desk: Desk, job: Job, tmp_path: Path) -> AsyncIterator[trainer.Training]:
    """A trainer that has put the prompts of two steps."""
    with closing(Ledger(tmp_path / "ledger")) as ledger:
        found = await training(desk, job, ledger)
        await found._put_prompts(job.prompts_until(0))
        yield found


async def answered(desk: Desk, job: Job, version: int) -> list[str]:
    """Two prompts answered by weights of this version, but not acked; their keys."""
    follower = Follower(desk, Policy(job.digits), version)
    claim = await take(Badge("r", job.folder), desk, ROLLOUT, rollout._wanted(job, version), 0.0, 60)
    await rollout._answer(desk, job, follower, claim.batch.select_samples([0, 1]))
    return [str(key) for key in claim.batch.select_samples([0, 1]).keys or ()]


async def versions_of_answers(desk: Desk) -> list[int]:
    batch = await desk.client.read(ANSWERS, include=["custom_meta"])
    return [int((meta or {})["weight_version"]) for meta in batch.custom_meta or ()]


@pytest.mark.asyncio
async def test_a_prompt_that_comes_again_keeps_the_answers_it_has(
    desk: Desk, job: Job, begun: trainer.Training
) -> None:
    keys = await answered(desk, job, 0)
    before = await desk.client.read(ANSWERS, include=INCLUDE, fields=[INPUT_IDS])
    bytes_before = fetch(desk, desk.tally("t"), before, [INPUT_IDS])[INPUT_IDS]
    await desk.client.release_worker("r")
    assert await answered(desk, job, 1) == keys
    after = await desk.client.read(ANSWERS, include=INCLUDE, fields=[INPUT_IDS])
    assert (after.global_indexes, after.custom_meta) == (before.global_indexes, before.custom_meta)
    assert await versions_of_answers(desk) == [0] * 4
    assert np.array_equal(fetch(desk, desk.tally("t"), after, [INPUT_IDS])[INPUT_IDS], bytes_before)


@pytest.mark.asyncio
async def test_a_prompt_that_comes_again_after_its_answers_were_cleared_is_not_answered_again(
    desk: Desk, job: Job, begun: trainer.Training
) -> None:
    keys = await answered(desk, job, 0)
    rows = list((await desk.client.read(ANSWERS, group_ids=keys[:1])).global_indexes)
    begun.progress.add("c", rows, dict.fromkeys(SEEN, 0.0))
    await clear_trained(desk, job, begun.progress)
    await desk.client.release_worker("r")
    assert await answered(desk, job, 1) == keys
    left = await desk.client.keys(ANSWERS)
    assert [line.key for line in left] == [f"{keys[1]}_{number}" for number in range(2)]


@pytest.mark.asyncio
async def test_answers_that_come_again_to_a_judge_are_judged_once_and_those_that_are_cleared_are_left_out(
    desk: Desk, job: Job, begun: trainer.Training
) -> None:
    await answered(desk, job, 0)
    claim = await take(Badge("j", job.folder), desk, REWARD, Want(ANSWERS, (INPUT_IDS,), 1, 4), 0.0, 60)
    judged = list[int]()

    def judge(sequences: np.ndarray) -> np.ndarray:
        judged.append(len(sequences))
        return np.ones(len(sequences), np.float32)

    await judge_batch(desk, REWARD, claim.batch.select_samples([0, 1]), SCORE, judge)
    progress = Progress()
    progress.add("c", list(claim.batch.global_indexes)[:1], dict.fromkeys(SEEN, 0.0))
    await clear_trained(desk, job, progress)
    await judge_batch(desk, REWARD, claim.batch, SCORE, judge)
    await judge_batch(desk, REWARD, claim.batch, SCORE, judge)
    assert judged == [2, 2]
    assert list((await desk.client.read(ANSWERS, fields=[SCORE])).production_status) == [1, 1, 1]


@pytest.mark.asyncio
async def test_a_rollout_gets_no_prompt_that_its_weights_are_too_old_for(
    desk: Desk, job: Job, begun: trainer.Training
) -> None:
    await begun._put_prompts(6)  # steps 0 to 2; the last is put as if it were step 1, the latest that may be out
    begun._prompts = 4
    begun.progress.version = 1
    await begun._put_prompts(6)  # again, at version 1, as step 2
    claim = await take(Badge("r", job.folder), desk, ROLLOUT, rollout._wanted(job, 0), 0.0, 60)
    assert claim.batch.keys == [f"p{number:06d}" for number in range(4)]
    nothing = await take(Badge("r", job.folder), desk, ROLLOUT, rollout._wanted(job, 0), 0.0, 60)
    assert not nothing
    more = await take(Badge("r", job.folder), desk, ROLLOUT, rollout._wanted(job, 1), 0.0, 60)
    assert more.batch.keys == ["p000004", "p000005"]


@pytest.mark.asyncio
async def test_groups_that_are_too_old_are_dead_and_new_prompts_take_their_place(
    desk: Desk, job: Job, begun: trainer.Training
) -> None:
    await answered(desk, job, 0)
    begun.progress.version = 1
    await begun._reject_old()
    assert begun._too_old == 0
    begun.progress.version = 2
    await begun._reject_old()
    assert begun._too_old == 2
    dead = await desk.client.dead(ANSWERS, ACTOR)
    assert [line.reason for line in dead] == ["too old for version 2"] * 4
    await begun._put_prompts(job.prompts_until(2) + begun._too_old)
    assert len(await desk.client.keys(PROMPTS)) == 2 * 4 + 2


@pytest.mark.asyncio
async def test_the_next_life_of_the_trainer_puts_the_same_prompts_under_the_same_indexes(
    desk: Desk, job: Job, begun: trainer.Training
) -> None:
    before = await desk.client.keys(PROMPTS)
    with closing(Ledger(job.folder / "ledger")) as ledger:
        again = await training(desk, job, ledger)
        await again._put_prompts(job.prompts_until(0))
    assert [(line.key, line.global_index) for line in await desk.client.keys(PROMPTS)] == [
        (line.key, line.global_index) for line in before
    ]
    prompts = await desk.client.read(PROMPTS, include=INCLUDE)
    values = fetch(desk, desk.tally("t"), prompts, ["prompts"])["prompts"]
    assert [value.tolist() for value in values] == [make_prompt(5, number, 3).tolist() for number in range(4)]


@pytest.mark.asyncio
async def test_a_follower_takes_the_newest_weights_and_the_reference_the_first(desk: Desk, job: Job) -> None:
    policies = [Learner(Job(job.folder, seed=seed, digits=3)).policy for seed in range(3)]
    for version, policy in enumerate(policies):
        await publish(desk, policy, version)
    await desk.client.insert(WEIGHTS, keys=["v3"], custom_meta=[{"weight_version": 3}])  # not there yet
    newest, first = Follower(desk, Policy(3)), Follower(desk, Policy(3))
    await newest.take()
    await clear_before(desk, 2)
    await first.take(min)
    assert (newest.version, first.version) == (2, 0)
    assert to_vector(newest.policy).equal(to_vector(policies[2]))
    assert to_vector(first.policy).equal(to_vector(policies[0]))
    assert [line.key for line in await desk.client.keys(WEIGHTS)] == ["v0", "v2", "v3"]
