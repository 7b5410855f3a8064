"""The trainer: puts prompts, claims whole groups of answers, trains them, and publishes new weights.

A version counts from the ack on: the checkpoint first, then the ack, then the weights. Killed anywhere in between, the
next life goes back to the newest version that was acked (progress.py).
"""

import time
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from batchmeta import BatchMeta
from crew.clearing import finish_pending
from crew.desk import Desk, Sample, fetch, write
from crew.leased import Badge, settle, take
from crew.ledger import Ledger

from . import progress as versions
from . import weights
from .digits import make_prompt
from .job import ACTOR, ANSWERS, PROMPT, PROMPTS, SCORE, TRAINED, Job
from .learner import Batch, Learner
from .progress import Progress
from .together import save_together

LEASE_S = 5.0
WAIT_S = 1.0
VERSIONS_KEPT = 2
TRAINER = "trainer"


async def trainer(badge: Badge, desk: Desk, job: Job) -> None:
    """Train until all steps are done, from the newest version that counts."""
    torch.set_num_threads(1)
    with closing(Ledger(badge.file)) as ledger:
        training = Training(badge, desk, job, ledger, Learner(job))
        await training.begin()
        while training.progress.version < job.steps:
            await training.step()
        for partition in (PROMPTS, ANSWERS):
            await desk.client.seal(partition)


@dataclass(slots=True)
class Training:
    """One life of the trainer."""

    badge: Badge
    desk: Desk
    job: Job
    ledger: Ledger
    learner: Learner
    progress: Progress = field(default_factory=Progress)
    _prompts: int = 0
    _too_old: int = 0
    _began: float = 0.0

    async def begin(self) -> None:
        """Take up what the life before left behind."""
        self._go_back()
        await finish_pending(self.desk)
        await weights.publish(self.desk, self.learner.policy, self.progress.version)
        # Those of steps that are trained were put; later ones may have been, and are put again under the same keys.
        self._prompts = self.job.prompts * self.progress.version
        counts = await self.desk.client.consumption(ANSWERS, ACTOR, counts_only=True)
        self._too_old = counts.dead // self.job.answers
        await save_together(self.desk, self.job, self.progress)

    def _go_back(self) -> None:
        folder = self.job.versions
        folder.mkdir(parents=True, exist_ok=True)
        version = versions.newest_valid(folder, self.badge.file)
        if version is None:
            versions.save(folder, self.progress, _arrays(self.learner))
        else:
            self.progress, tensors = versions.load(folder, version)
            self.learner.load({name: torch.from_numpy(tensor) for name, tensor in tensors.items()})
        seconds = self.progress.column("seconds")
        self._began = time.monotonic() - (seconds[-1] if len(seconds) else 0.0)

    async def step(self) -> None:
        """One step of the optimizer, if a batch for it comes in time."""
        version = self.progress.version
        await self._reject_old()
        await self._put_prompts(self.job.prompts_until(version) + self._too_old)
        claim = await take(self.badge, self.desk, ACTOR, self.job.wanted(version), WAIT_S, LEASE_S)
        if not claim:
            return

        async def work(batch: BatchMeta) -> None:
            await self._train(batch, str(claim.claim_id))

        if not await settle(self.desk, self.ledger, ACTOR, claim, work):
            self._go_back()
            return
        await weights.publish(self.desk, self.learner.policy, self.progress.version)
        versions.prune(self.job.versions, VERSIONS_KEPT)
        await save_together(self.desk, self.job, self.progress)

    async def _reject_old(self) -> None:
        """Groups that are too old are dead for the actor from now on, and a new prompt comes for each."""
        version = self.progress.version
        claim = await take(self.badge, self.desk, ACTOR, self.job.too_old(version), 0.0, LEASE_S)
        if claim:
            reasons = dict.fromkeys(claim.batch.global_indexes, f"too old for version {version}")
            await self.desk.client.ack(str(claim.claim_id), str(claim.token), reject=reasons)
            self._too_old += len(reasons) // self.job.answers

    async def _put_prompts(self, until: int) -> None:
        if until > self._prompts:
            latest = self.progress.version + self.job.staleness
            samples = [_prompt(self.job, number, latest) for number in range(self._prompts, until)]
            await write(self.desk, self.desk.tally(TRAINER), PROMPTS, samples)
            self._prompts = until

    async def _train(self, batch: BatchMeta, claim_id: str) -> None:
        columns = fetch(self.desk, self.desk.tally(ACTOR), batch, TRAINED)
        _check_groups(batch, self.job.answers)
        seen = await self._seen(batch)
        arrays = [np.stack(columns[name]) for name in TRAINED]
        seen["reward"] = float(arrays[TRAINED.index(SCORE)].mean())
        seen["kl"] = self.learner.learn(Batch(*map(torch.from_numpy, arrays)))
        self.progress.add(claim_id, list(batch.global_indexes), seen)
        versions.save(self.job.versions, self.progress, _arrays(self.learner))

    async def _seen(self, batch: BatchMeta) -> dict[str, float]:
        """What a plot shows of this moment: how old the batch is, and how many answers are in which state."""
        want = self.job.wanted(self.progress.version)
        found = await self.desk.client.explain(
            ANSWERS, ACTOR, want.fields, want.most, sampler=want.sampler, where=want.where
        )
        behind = [self.progress.version - weights.version_of(meta) for meta in batch.custom_meta or ()]
        settled = found.consumed + found.leased + found.dead + found.ready
        return {
            "seconds": time.monotonic() - self._began,
            "staleness": float(max(behind)),
            "unfinished": found.total - settled,
            "ready": found.ready,
            "leased": found.leased,
            "trained": found.consumed,
            "too_old": found.dead,
        }


def _prompt(job: Job, number: int, latest: int) -> Sample:
    """`latest`: the highest step that may be out by now; a prompt in the place of one whose answers were too old."""
    key = f"p{number:06d}"
    step = min(number // job.prompts, latest)
    return Sample(key, key, {PROMPT: make_prompt(job.seed, number, job.digits)}, {"step": step})


def _check_groups(batch: BatchMeta, answers: int) -> None:
    groups = list(batch.group_ids or ())
    if any(len(set(groups[at : at + answers])) != 1 for at in range(0, len(groups), answers)):
        raise ValueError(f"a batch that is not of whole groups of {answers}: {groups}")


def _arrays(learner: Learner) -> dict[str, NDArray[Any]]:
    return {name: tensor.numpy() for name, tensor in learner.tensors().items()}
