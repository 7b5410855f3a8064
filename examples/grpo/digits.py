"""The task with a verifiable reward: sort the digits of the prompt. No process of a run lives here.

A sequence is `digits` digits, SEPARATOR, and the answer's `digits` digits: int64 [2 * digits + 1].
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

DIGITS = 10
SEPARATOR = 10
VOCABULARY = 11


def make_prompt(seed: int, number: int, digits: int) -> NDArray[np.int64]:
    """Prompt `number` of a run: int64 [digits], the same whoever makes it."""
    return np.random.default_rng([seed, number]).integers(0, DIGITS, digits, np.int64)


def scores(sequences: NDArray[Any], digits: int) -> NDArray[np.float32]:
    """float32 [B]: which part of an answer's places is right, 0 to 1; `sequences`: int64 [B, 2 * digits + 1]."""
    wanted = np.sort(sequences[:, :digits], axis=1)
    right: NDArray[np.float32] = (sequences[:, digits + 1 :] == wanted).mean(axis=1).astype(np.float32)
    return right
