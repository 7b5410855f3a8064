"""Real text as tokens: Python's own help topics, cut into pieces and encoded byte by byte.

One character is one token, so a length in tokens is a length in characters and ids decode back to their text.
"""

from functools import cache
from pydoc_data.topics import topics

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]

# As in byte-level tokenizers, the first ids are not bytes: padding, begin and end.
FIRST_BYTE = 3
VOCABULARY = FIRST_BYTE + 256


@cache
def corpus() -> str:
    """All topics in order of their names, ASCII only, so that a cut never splits a character."""
    return "\n".join(topics[name] for name in sorted(topics)).encode("ascii", "ignore").decode("ascii")


def cut(rng: np.random.Generator, length: int) -> str:
    """`length` characters from a random place of the corpus."""
    text = corpus()
    start = int(rng.integers(0, len(text) - length))
    return text[start : start + length]


def encode(text: str) -> Ids:
    """int64 [len(text)]"""
    return np.frombuffer(text.encode("ascii"), np.uint8).astype(np.int64) + FIRST_BYTE


def decode(ids: Ids) -> str:
    """The text of `ids`, int64 [L]."""
    return (ids - FIRST_BYTE).astype(np.uint8).tobytes().decode("ascii")


@cache
def unigram_model(name: str) -> NDArray[np.float32]:
    """float32 [VOCABULARY]: a log-probability for each token; another name is another model."""
    logits: NDArray[np.float64] = np.random.default_rng(list(name.encode())).normal(size=VOCABULARY)
    normalised: NDArray[np.float64] = logits - np.log(np.exp(logits).sum())
    return normalised.astype(np.float32)


def log_probs(name: str, ids: Ids) -> NDArray[np.float32]:
    """float32 [L]: what the model `name` says of each of `ids`, int64 [L]."""
    picked: NDArray[np.float32] = unigram_model(name)[ids]
    return picked
