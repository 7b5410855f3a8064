"""The data of the verl-GRPO profile: prompts and answers, their fields, keys and custom meta.

Deterministic: the same seed gives the same bytes, whichever process makes them and in whatever order.
"""

from dataclasses import dataclass
from math import sqrt
from uuid import UUID

import numpy as np

from crew.desk import Sample
from crew.values import Row

from .text import Ids, cut, decode, encode, log_probs

STEP = 0
PROMPTS = "prompts"
ANSWERS = f"train@step_{STEP}"
SESSION = 0

PROMPT_FIELDS = ("prompts", "raw_prompt", "data_source", "ability", "uid")
TENSORS = (
    "prompts",
    "responses",
    "response_mask",
    "loss_mask",
    "input_ids",
    "position_ids",
    "rollout_log_probs",
    "rm_scores",
    "dummy_tensor",
)
OBJECTS = (
    "num_turns",
    "metrics",
    "extra_fields",
    "raw_prompt",
    "data_source",
    "ability",
    "reward_model",
    "extra_info",
    "uid",
    "global_steps",
)
ANSWER_FIELDS = TENSORS + OBJECTS
# A tensor of one shape in every sample; all others are ragged.
FIXED_SHAPE = frozenset({"dummy_tensor"})
# Each rank task computes one more field from what the rollout wrote.
COMPUTED = {"old_log_prob": "old_log_probs", "ref": "ref_log_prob"}


@dataclass(frozen=True, slots=True)
class Step:
    """The size of one step and the seed of its data; `max_len` is the longest response in tokens."""

    prompts: int = 64
    answers: int = 8
    seed: int = 0
    max_len: int = 8000

    @property
    def samples(self) -> int:
        return self.prompts * self.answers


def long_tailed(rng: np.random.Generator, low: int, high: int) -> int:
    """A length in [low, high], log-normal around the geometric mean of the two."""
    length = round(sqrt(low * high) * float(np.exp(0.8 * rng.normal())))
    return min(max(length, low), high)


def make_prompts(step: Step) -> list[Sample]:
    """The prompts of the step; the key is a UUID, and so is the group of its answers later."""
    rng = np.random.default_rng(step.seed)
    longest = max(2, step.max_len // 4)
    return [_prompt(rng, longest) for _ in range(step.prompts)]


def _prompt(rng: np.random.Generator, longest: int) -> Sample:
    uid = str(UUID(bytes=rng.bytes(16), version=4))
    text = cut(rng, long_tailed(rng, min(50, longest), longest))
    values: Row = {
        "prompts": encode(text),
        "raw_prompt": [{"role": "user", "content": text}],
        "data_source": "python/help-topics",
        "ability": "documentation",
        "uid": uid,
    }
    return Sample(uid, uid, values, {"prompt_len": len(text)})


def make_answer(step: Step, prompt: Row, index: int) -> Sample:
    """Answer `index` to a prompt, given by the values of its fields as they came from storage."""
    uid, ids = prompt["uid"], prompt["prompts"]
    rng = np.random.default_rng([step.seed, UUID(uid).int, index])
    response = encode(cut(rng, long_tailed(rng, min(100, step.max_len), step.max_len)))
    values = _tensors(rng, ids, response) | _objects(prompt, index)
    return Sample(f"{uid}_{SESSION}_{index}", uid, values, _custom_meta(len(ids), len(response)))


def _tensors(rng: np.random.Generator, prompt: Ids, response: Ids) -> Row:
    length = len(response)
    scores = np.zeros(length, np.float32)
    scores[-1] = rng.random(dtype=np.float32)
    return {
        "prompts": prompt,
        "responses": response,
        "response_mask": np.ones(length, np.int64),
        "loss_mask": rng.integers(0, 2, length, np.int64),
        "input_ids": np.concatenate([prompt, response]),
        "position_ids": np.arange(len(prompt) + length, dtype=np.int64),
        "rollout_log_probs": log_probs("rollout", response),
        "rm_scores": scores,
        "dummy_tensor": np.zeros(1, np.uint8),
    }


def _objects(prompt: Row, index: int) -> Row:
    text = decode(prompt["prompts"])
    return {
        "num_turns": 2,
        "metrics": {"generate_sequences": 0.25 * (index + 1), "tool_calls": 0.0},
        "extra_fields": {},
        "raw_prompt": prompt["raw_prompt"],
        "data_source": prompt["data_source"],
        "ability": prompt["ability"],
        "reward_model": {"style": "rule", "ground_truth": text[-20:]},
        "extra_info": {"split": "train", "index": index},
        "uid": prompt["uid"],
        "global_steps": STEP,
    }


def _custom_meta(prompt_len: int, response_len: int) -> Row:
    return {
        "status": "success",
        "prompt_len": prompt_len,
        "response_len": response_len,
        "seq_len": prompt_len + response_len,
        "global_steps": STEP,
        "min_global_steps": STEP,
        "max_global_steps": STEP,
    }
