"""What is trained, how large, and the names by which the processes of a run find one another's samples."""

from dataclasses import dataclass
from pathlib import Path

from crew.desk import Want

PROMPTS, ANSWERS, WEIGHTS = "prompts", "train", "weights"
# Each task consumes every sample of its partition once; "dead" ones were too old for the actor.
ROLLOUT, REFERENCE, REWARD, ACTOR = "rollout", "ref", "reward", "actor_update"

PROMPT, POLICY = "prompts", "policy"
INPUT_IDS, ROLLOUT_LOG_PROBS, REF_LOG_PROB, SCORE = "input_ids", "rollout_log_probs", "ref_log_prob", "rm_scores"
TRAINED = (INPUT_IDS, ROLLOUT_LOG_PROBS, REF_LOG_PROB, SCORE)
FIELDS = (PROMPT, POLICY, *TRAINED)
# A score is one number, the weights are one vector; prompts and answers are ragged, as they are in earnest.
FIXED_SHAPE = frozenset({SCORE, POLICY})


@dataclass(frozen=True, slots=True)
class Job:
    """The size of a run. `prompts`: groups in one step; `answers`: to each prompt; `digits`: of each prompt.

    `staleness`: the most versions that the weights of an answer may be behind those it trains.
    `keep_every`: after so many steps the trainer and the service save a checkpoint together.
    """

    folder: Path
    seed: int = 0
    steps: int = 160
    prompts: int = 16
    answers: int = 8
    digits: int = 4
    staleness: int = 2
    keep_every: int = 40
    has_zero_advantages: bool = False

    @property
    def versions(self) -> Path:
        """The folder of the trainer's checkpoints."""
        return self.folder / "trainer"

    @property
    def kept(self) -> Path:
        """The folder of those that belong to a checkpoint of the service."""
        return self.folder / "kept"

    @property
    def ledgers(self) -> Path:
        """The folder of the ledgers of all workers."""
        return self.folder / "ledgers"

    @property
    def samples_per_step(self) -> int:
        return self.prompts * self.answers

    def prompts_until(self, version: int) -> int:
        """How many prompts may be out once the weights have this version: enough to be `staleness` steps ahead."""
        return self.prompts * min(version + self.staleness + 1, self.steps)

    def wanted(self, version: int) -> Want:
        """What the trainer claims at a version: the groups of one step, none of them too old."""
        where = ({"path": "weight_version", "op": ">=", "value": version - self.staleness},)
        count = self.samples_per_step
        return Want(ANSWERS, TRAINED, count, count, self._groups, where)

    def too_old(self, version: int) -> Want:
        """Groups that no later version may train either."""
        where = ({"path": "weight_version", "op": "<", "value": version - self.staleness},)
        return Want(ANSWERS, (INPUT_IDS,), self.answers, self.samples_per_step, self._groups, where)

    @property
    def _groups(self) -> dict[str, object]:
        return {"name": "grpo_group", "n_samples_per_prompt": self.answers}
