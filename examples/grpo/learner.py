"""GRPO: group-normalised advantages, the clipped loss, and a penalty for leaving the reference policy.

Shao et al. 2024 (DeepSeekMath); the estimate of the KL divergence is the k3 of Schulman 2020. Nothing here knows of
the service.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .job import Job
from .policy import Policy

LEARNING_RATE = 4e-3
BETAS = (0.9, 0.99)
PASSES = 3  # over each batch
CLIP = 0.2
KL_WEIGHT = 1e-3
MOST_NORM = 1.0
SMALL = 1e-4


@dataclass(frozen=True, slots=True)
class Batch:
    """Whole groups, one after another. `ids`: int64 [B, T]; log-probs: float32 [B, digits]; `scores`: float32 [B]."""

    ids: Tensor
    rollout_log_probs: Tensor
    ref_log_probs: Tensor
    scores: Tensor


class Learner:
    """The policy that is trained, and its optimizer."""

    def __init__(self, job: Job) -> None:
        torch.manual_seed(job.seed)
        self.policy = Policy(job.digits)
        self.optimizer = torch.optim.Adam(self.policy.parameters(), LEARNING_RATE, BETAS)
        self._answers, self._is_blind = job.answers, job.has_zero_advantages

    def learn(self, batch: Batch) -> float:
        """One step on a batch; the mean KL divergence from the reference before its last pass."""
        gains = advantages(batch.scores, self._answers)
        if self._is_blind:
            gains = torch.zeros_like(gains)
        kl = 0.0
        for _ in range(PASSES):
            loss, kl = self._loss(batch, gains)
            self.optimizer.zero_grad()
            torch.autograd.backward(loss)
            nn.utils.clip_grad_norm_(self.policy.parameters(), MOST_NORM)
            self.optimizer.step()
        return kl

    def _loss(self, batch: Batch, gains: Tensor) -> tuple[Tensor, float]:
        log_probs = self.policy.log_probs(batch.ids)
        ratio = (log_probs - batch.rollout_log_probs).exp()
        gained = torch.minimum(ratio * gains, ratio.clamp(1 - CLIP, 1 + CLIP) * gains)
        behind = batch.ref_log_probs - log_probs
        kl = (behind.exp() - behind - 1).mean()
        return KL_WEIGHT * kl - gained.mean(), kl.item()

    def tensors(self) -> dict[str, Tensor]:
        """All that `load` needs, by name."""
        moments = self.optimizer.state_dict()["state"]
        return {f"policy.{name}": tensor for name, tensor in self.policy.state_dict().items()} | {
            f"adam.{number}.{name}": tensor for number, state in moments.items() for name, tensor in state.items()
        }

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Go back to what `tensors` said."""
        policy, moments = {}, dict[int, dict[str, Tensor]]()
        for name, tensor in tensors.items():
            kind, _, rest = name.partition(".")
            if kind == "policy":
                policy[rest] = tensor
            elif kind == "adam":
                number, _, moment = rest.partition(".")
                moments.setdefault(int(number), {})[moment] = tensor
        self.policy.load_state_dict(policy)
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": moments, "param_groups": groups})


def advantages(scores: Tensor, answers: int) -> Tensor:
    """float32 [B, 1]: how much better than the other answers to its prompt each is, in standard deviations."""
    groups = scores.view(-1, answers)
    spread = groups.std(dim=1, keepdim=True)
    return ((groups - groups.mean(dim=1, keepdim=True)) / (spread + SMALL)).view(-1, 1)
