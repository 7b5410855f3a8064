"""The two processes that add a field to each answer: log-probs of the reference policy, and the reward."""

from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from batchmeta import BatchMeta
from crew.desk import Desk, Want, add, fetch
from crew.leased import Badge, consume
from crew.ledger import Ledger

from .digits import scores
from .job import ANSWERS, INPUT_IDS, REF_LOG_PROB, REFERENCE, REWARD, SCORE, Job
from .policy import Policy
from .rollout import PROMPTS_AT_ONCE
from .weights import Follower

Sequences = NDArray[np.int64]
Judge = Callable[[Sequences], NDArray[Any]]  # a value for each of the sequences


async def reference(badge: Badge, desk: Desk, job: Job) -> None:
    """What the policy that the run began with says of each answer."""
    torch.set_num_threads(1)
    follower = Follower(desk, Policy(job.digits))
    await follower.take(min)

    def judge(sequences: Sequences) -> NDArray[Any]:
        with torch.no_grad():
            found: NDArray[Any] = follower.policy.log_probs(torch.from_numpy(sequences)).numpy()
        return found

    await _consume(badge, desk, REFERENCE, job, REF_LOG_PROB, judge)


async def reward(badge: Badge, desk: Desk, job: Job) -> None:
    """The score of each answer."""

    await _consume(badge, desk, REWARD, job, SCORE, lambda sequences: scores(sequences, job.digits))


async def _consume(badge: Badge, desk: Desk, task: str, job: Job, field: str, judge: Judge) -> None:
    # As many as a rollout writes at once, so that a claim rarely waits for more.
    want = Want(ANSWERS, (INPUT_IDS,), 1, job.answers * PROMPTS_AT_ONCE)

    async def work(batch: BatchMeta) -> None:
        await judge_batch(desk, task, batch, field, judge)

    with closing(Ledger(badge.file)) as ledger:
        await consume(badge, desk, ledger, task, want, work)


async def judge_batch(desk: Desk, task: str, batch: BatchMeta, field: str, judge: Judge) -> None:
    """Add `field` to the answers of a batch that lack it.

    Those that come again, because their worker died before the ack, may have it, and may even be trained and cleared.
    """
    indexes = batch.global_indexes
    now = await desk.client.read(ANSWERS, global_indexes=indexes, fields=[INPUT_IDS, field], include=["field_status"])
    status = now.field_status or {}
    is_there, is_judged = status.get(INPUT_IDS, [0] * len(indexes)), status.get(field, [0] * len(indexes))
    lacking = [row for row in range(len(indexes)) if is_there[row] and not is_judged[row]]
    if lacking:
        part = batch.select_samples(lacking)
        sequences = np.stack(fetch(desk, desk.tally(task), part, (INPUT_IDS,))[INPUT_IDS])
        await add(desk, desk.tally(task), part, {field: [np.array(value) for value in judge(sequences)]})
