"""What came of a run: the account of its samples, whether the policy has learned, and the line that says so."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from batchmeta import Consumption

from .job import Job
from .progress import Progress

# By how much the mean reward of the last tenth of the steps must be above that of the first.
LEARNED = 0.3


@dataclass(frozen=True, slots=True)
class Outcome:
    """Rewards are 0 to 1; `samples`: answers that were put; `too_old`: of these, those that were not trained for it."""

    seed: int
    storage: str
    steps: int
    seconds: float
    reward_start: float
    reward_end: float
    has_learned: bool
    samples: int
    trained: int
    too_old: int
    duplicates: int
    lost: int
    most_stale: int
    killed: int
    left_in_storage: int

    def line(self) -> str:
        """All of it as one line of JSON."""
        return json.dumps(asdict(self))

    def faults(self, job: Job) -> list[str]:
        """One line for each thing that is wrong with the account; learning is no part of it."""
        found = []
        if self.steps != job.steps or self.trained != job.steps * job.samples_per_step:
            found.append(f"{self.steps} steps of {job.steps}, {self.trained} samples trained")
        if self.duplicates or self.lost:
            found.append(f"{self.duplicates} samples trained twice, {self.lost} neither trained nor too old")
        if self.most_stale > job.staleness:
            found.append(f"samples were {self.most_stale} versions old, and {job.staleness} is the most")
        if self.left_in_storage:
            found.append(f"{self.left_in_storage} values are left in the storage")
        return found


def outcome(
    job: Job, storage: str, progress: Progress, counts: Consumption, killed: Sequence[str], left_in_storage: int
) -> Outcome:
    """`progress` is the trainer's record of the rows that made the policy; `counts` is the service's, independent."""
    rewards, tenth = progress.column("reward"), max(1, progress.version // 10)
    start, end = float(rewards[:tenth].mean()), float(rewards[-tenth:].mean())
    trained = _rows(progress)
    return Outcome(
        seed=job.seed,
        storage=storage,
        steps=progress.version,
        seconds=round(float(progress.column("seconds")[-1]), 1),
        reward_start=round(start, 4),
        reward_end=round(end, 4),
        has_learned=end >= start + LEARNED,
        samples=counts.total,
        trained=len(trained),
        too_old=counts.dead,
        duplicates=sum(times - 1 for times in Counter(trained.tolist()).values()),
        lost=abs(counts.consumed - len(set(trained.tolist()))) + counts.total - counts.consumed - counts.dead,
        most_stale=int(progress.column("staleness").max()),
        killed=len(killed),
        left_in_storage=left_in_storage,
    )


def _rows(progress: Progress) -> NDArray[np.int64]:
    return np.concatenate(progress.rows)
