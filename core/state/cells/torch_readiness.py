"""Bit words on a tensor device. torch is imported here and nowhere else, and this file only where a device is chosen.

Used are `index_select`, `&`, `==`, `all`, `index_copy_`, zeros, slices and copies: what any device of torch has.
"""

import importlib
from functools import partial

import numpy as np
import torch

from core.arrays import Bits, Ints

from .readiness import NewWords, StatusWords


def on(device: str) -> NewWords:
    """How words are made on a device of torch, as torch names it."""
    return partial(TorchWords, torch.device(device))


def count(kind: str) -> int:
    """How many devices of a kind (`cuda`, `npu`) torch sees here. Raises what loading them raises."""
    if kind == "npu" and not hasattr(torch, "npu"):
        importlib.import_module("torch_npu")
    module = getattr(torch, kind, None)
    if module is None or not module.is_available():
        return 0
    return int(module.device_count())


class TorchWords(StatusWords):
    """torch.int64 [capacity, width]. What comes in is copied to the device, what goes out to the host."""

    __slots__ = ("_words", "device")

    def __init__(self, device: torch.device, rows: int) -> None:
        self.device = device
        self._set(self._zeros(rows, 1))

    def like(self, rows: int) -> "TorchWords":
        return TorchWords(self.device, rows)

    def restore(self, words: Ints) -> None:
        self._set(self._there(words))

    def _move(self, kept: slice | Ints, capacity: int, width: int) -> None:
        found = self._found(kept)
        words = self._zeros(capacity, width)
        words[: len(found), : self.width] = found
        self._set(words)

    def gather(self, rows: slice | Ints) -> Ints:
        return np.asarray(self._found(rows).cpu().numpy())

    def complete(self, rows: Ints, mask: Ints) -> Bits:
        wanted = self._there(mask)
        return ((self._found(rows) & wanted) == wanted).all(1).cpu().numpy().view(np.uint8)

    def write(self, rows: Ints, words: Ints) -> None:
        self._words.index_copy_(0, self._there(rows), self._there(words))

    def _set(self, words: torch.Tensor) -> None:
        self._words = words
        self.capacity, self.width = words.shape

    def _zeros(self, rows: int, width: int) -> torch.Tensor:
        return torch.zeros((rows, width), dtype=torch.int64, device=self.device)

    def _there(self, values: Ints) -> torch.Tensor:
        return torch.from_numpy(values).to(self.device)

    def _found(self, rows: slice | Ints) -> torch.Tensor:
        return self._words[rows] if isinstance(rows, slice) else self._words.index_select(0, self._there(rows))
