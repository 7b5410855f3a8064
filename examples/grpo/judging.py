"""The two processes that add a field to each answer: log-probs of the reference policy, and the reward."""

from contextlib import closing

import numpy as np
import torch

from batchmeta import BatchMeta
from crew.desk import Desk, Want, add, fetch
from crew.leased import Badge, Work, consume
from crew.ledger import Ledger

from .digits import scores
from .job import ANSWERS, INPUT_IDS, REF_LOG_PROB, REFERENCE, REWARD, SCORE, Job
from .policy import Policy
from .rollout import PROMPTS_AT_ONCE
from .weights import Follower


async def reference(badge: Badge, desk: Desk, job: Job) -> None:
    """What the policy that the run began with says of each answer."""
    torch.set_num_threads(1)
    follower = Follower(desk, Policy(job.digits))
    await follower.take(min)

    async def work(batch: BatchMeta) -> None:
        with torch.no_grad():
            found = follower.policy.log_probs(torch.from_numpy(_sequences(desk, REFERENCE, batch)))
        await add(desk, desk.tally(REFERENCE), batch, {REF_LOG_PROB: list(found.numpy())})

    await _consume(badge, desk, REFERENCE, job, work)


async def reward(badge: Badge, desk: Desk, job: Job) -> None:
    """The score of each answer."""

    async def work(batch: BatchMeta) -> None:
        found = scores(_sequences(desk, REWARD, batch), job.digits)
        await add(desk, desk.tally(REWARD), batch, {SCORE: [np.array(score) for score in found]})

    await _consume(badge, desk, REWARD, job, work)


async def _consume(badge: Badge, desk: Desk, task: str, job: Job, work: Work) -> None:
    # As many as a rollout writes at once, so that a claim rarely waits for more.
    want = Want(ANSWERS, (INPUT_IDS,), 1, job.answers * PROMPTS_AT_ONCE)
    with closing(Ledger(badge.file)) as ledger:
        await consume(badge, desk, ledger, task, want, work)


def _sequences(desk: Desk, task: str, batch: BatchMeta) -> "np.typing.NDArray[np.int64]":
    return np.stack(fetch(desk, desk.tally(task), batch, (INPUT_IDS,))[INPUT_IDS])
