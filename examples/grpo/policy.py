"""The policy: a transformer of two layers, which answers prompts and says how likely an answer is.

Torch as it comes: nothing here knows of the service, the storage or GRPO.
"""

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from .digits import SEPARATOR, VOCABULARY

WIDTH, HEADS, LAYERS = 32, 4, 2
EMBEDDING_STD = 0.5


class Block(nn.Module):
    """Attention to what came before, and a feed-forward layer; both added to their input, float32 [B, T, WIDTH]."""

    def __init__(self) -> None:
        super().__init__()
        self.before_attention, self.before_forward = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.queries_keys_values, self.attended = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.feed_forward = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        split = self.queries_keys_values(self.before_attention(x)).view(batch, length, 3, HEADS, WIDTH // HEADS)
        queries, keys, values = split.permute(2, 0, 3, 1, 4)
        heads = functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        x = x + self.attended(heads.transpose(1, 2).reshape(batch, length, WIDTH))
        found: Tensor = x + self.feed_forward(self.before_forward(x))
        return found


class Policy(nn.Module):
    """Next-token logits for sequences of up to `2 * digits` tokens."""

    def __init__(self, digits: int) -> None:
        super().__init__()
        self.digits = digits
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(2 * digits, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.logits = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)
        nn.init.normal_(self.tokens.weight, std=EMBEDDING_STD)
        nn.init.normal_(self.places.weight, std=EMBEDDING_STD)

    def forward(self, ids: Tensor) -> Tensor:
        """float32 [B, T, VOCABULARY] of `ids`, int64 [B, T]."""
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        found: Tensor = self.logits(self.norm(self.blocks(x)))
        return found

    def log_probs(self, ids: Tensor) -> Tensor:
        """float32 [B, digits]: of each token of the answers in `ids`, int64 [B, 2 * digits + 1]."""
        logits: Tensor = self(ids[:, :-1])[:, self.digits :]
        return logits.log_softmax(-1).gather(-1, ids[:, self.digits + 1 :, None])[..., 0]

    @torch.no_grad()
    def answer(self, prompts: Tensor, chance: torch.Generator) -> Tensor:
        """Whole sequences, int64 [B, 2 * digits + 1], with answers drawn to `prompts`, int64 [B, digits]."""
        ids = torch.cat([prompts, torch.full((len(prompts), 1), SEPARATOR)], dim=1)
        for _ in range(self.digits):
            drawn = torch.multinomial(self(ids)[:, -1].softmax(-1), 1, generator=chance)
            ids = torch.cat([ids, drawn], dim=1)
        return ids


def to_vector(policy: Policy) -> Tensor:
    """All weights, float32 [P]."""
    return nn.utils.parameters_to_vector(policy.parameters()).detach()


def load_vector(policy: Policy, weights: Tensor) -> None:
    """Give the policy all its weights, float32 [P]."""
    nn.utils.vector_to_parameters(weights, policy.parameters())
