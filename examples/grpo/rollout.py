"""The rollout: takes prompts that its weights are new enough for, and writes the answers of its policy."""

from contextlib import closing

import numpy as np
import torch

from batchmeta import BatchMeta, PartitionSealed, SampleCleared, SampleClearing
from crew.desk import Desk, Sample, Want, fetch, write
from crew.leased import Badge, settle, take
from crew.ledger import Ledger

from .job import ANSWERS, INPUT_IDS, PROMPT, PROMPTS, ROLLOUT, ROLLOUT_LOG_PROBS, Job
from .policy import Policy
from .weights import Follower

PROMPTS_AT_ONCE = 4
LEASE_S = 5.0


async def rollout(badge: Badge, desk: Desk, job: Job) -> None:
    """Answer prompts until there are no more."""
    torch.set_num_threads(1)
    follower = Follower(desk, Policy(job.digits))

    async def work(batch: BatchMeta) -> None:
        await _answer(desk, job, follower, batch)

    with closing(Ledger(badge.file)) as ledger:
        while True:
            await follower.take()
            claim = await take(badge, desk, ROLLOUT, _wanted(job, follower.version), 0.0, LEASE_S)
            if claim:
                await settle(desk, ledger, ROLLOUT, claim, work)
            elif claim.done:
                return
            else:
                await follower.wait()


def _wanted(job: Job, version: int) -> Want:
    """Prompts of steps that may still train what these weights say of them."""
    where = ({"path": "step", "op": "<=", "value": version + job.staleness},)
    return Want(PROMPTS, (PROMPT,), 1, PROMPTS_AT_ONCE, None, where)


async def _answer(desk: Desk, job: Job, follower: Follower, batch: BatchMeta) -> None:
    """Answers to prompts, all written in one call.

    A prompt that comes again, because its worker died before the ack, may have its answers already: others may have
    worked on them, so that new ones from newer weights must not take their place. Those that were trained and cleared
    have left a tombstone.
    """
    keys = [str(key) for key in batch.keys or ()]
    written = await _answered(desk, keys)
    while rows := [row for row, key in enumerate(keys) if key not in written]:
        samples = _samples(desk, job, follower, batch.select_samples(rows))
        try:
            await write(desk, desk.tally(ROLLOUT), ANSWERS, samples)
        except (SampleCleared, SampleClearing) as cleared:
            gone = set(cleared.keys)
            written |= {sample.group_id for sample in samples if sample.key in gone}
        except PartitionSealed:  # all steps are trained
            return
        else:
            return


async def _answered(desk: Desk, keys: list[str]) -> set[str]:
    found = await desk.client.read(ANSWERS, group_ids=keys, fields=[INPUT_IDS], include=["group_ids"])
    groups = found.group_ids or ()
    return {str(group) for group, status in zip(groups, found.production_status, strict=True) if status}


def _samples(desk: Desk, job: Job, follower: Follower, batch: BatchMeta) -> list[Sample]:
    prompts = np.stack(fetch(desk, desk.tally(ROLLOUT), batch, (PROMPT,))[PROMPT])
    # Other draws for other prompts and weights, whichever process makes them.
    seed = np.random.SeedSequence([job.seed, follower.version, *batch.global_indexes]).generate_state(1)
    chance = torch.Generator().manual_seed(int(seed[0]))
    ids = follower.policy.answer(torch.from_numpy(prompts).repeat_interleave(job.answers, 0), chance)
    with torch.no_grad():
        log_probs = follower.policy.log_probs(ids)
    groups = [str(key) for key in batch.keys or () for _ in range(job.answers)]
    meta = {"weight_version": follower.version}
    return [
        Sample(f"{group}_{row % job.answers}", group, {INPUT_IDS: sequence, ROLLOUT_LOG_PROBS: likely}, meta)
        for row, (group, sequence, likely) in enumerate(zip(groups, ids.numpy(), log_probs.numpy(), strict=True))
    ]
