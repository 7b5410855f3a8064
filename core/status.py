"""Production status as bit words: bit f % 64 of word f // 64 of a row says whether field f is produced for it.

Row 0 is the *absent row*: nobody's, all zero. Whatever is not held is looked up there, so that no lookup needs a mask.
All tensor work of the service is here, device-agnostic; the number of operations never depends on the number of rows.
"""

from collections.abc import Iterable

import numpy as np
import torch

from .arrays import Bits, Flags, Ints

WORD = 64


def mask_of(bits: Iterable[int], words: int) -> Ints:
    """int64 [words]: the given bit numbers set."""
    out = [0] * words
    for bit in bits:
        out[bit // WORD] |= 1 << (bit % WORD)
    return np.array(out, np.uint64).view(np.int64)


class StatusWords:
    """int64 [rows, words] on the tensor device."""

    __slots__ = ("device", "words")

    def __init__(self, device: torch.device, rows: int) -> None:
        self.device = device
        self.words = torch.zeros((rows, 1), dtype=torch.int64, device=device)

    @property
    def width(self) -> int:
        """Words per row."""
        return self.words.shape[1]

    def reserve(self, rows: int, fields: int) -> None:
        """Room for this many rows and fields; what is there stays."""
        width = max(self.width, -(-fields // WORD))
        if rows == len(self.words) and width == self.width:
            return
        old = self.words
        self.words = torch.zeros((rows, width), dtype=torch.int64, device=self.device)
        kept = min(rows, len(old))
        self.words[:kept, : old.shape[1]] = old[:kept]

    def keep(self, rows: Ints, capacity: int) -> None:
        """Only these rows remain, in this order."""
        old = self.gather(rows)
        self.words = torch.zeros((capacity, self.width), dtype=torch.int64, device=self.device)
        self.words[: len(rows)] = old

    def gather(self, rows: Ints) -> torch.Tensor:
        """The words of these rows: int64 [len(rows), words], on the device."""
        return self.words.index_select(0, torch.from_numpy(rows).to(self.device))

    def complete(self, gathered: torch.Tensor, mask: Ints) -> Bits:
        """uint8 [rows]: 1 where every bit of `mask` is set. One AND, one compare."""
        wanted = torch.from_numpy(mask).to(self.device)
        return ((gathered & wanted) == wanted).all(1).cpu().numpy().view(np.uint8)

    def write(self, rows: Ints, words: Ints) -> None:
        """Replace the words of these rows (each named once)."""
        self.words.index_copy_(0, torch.from_numpy(rows).to(self.device), torch.from_numpy(words).to(self.device))


def covers(words: Ints, mask: Ints) -> Flags:
    """bool [rows]: as `complete`, on words already on the host."""
    if len(mask) == 1:
        return np.asarray((words[:, 0] & mask[0]) == mask[0])
    return np.asarray(((words & mask) == mask).all(1))


def count_bits(words: Ints) -> Ints:
    """int64 [fields]: for how many of these rows each bit is set."""
    as_bytes = np.ascontiguousarray(words).view(np.uint8)
    return np.asarray(np.unpackbits(as_bytes, axis=1, bitorder="little").sum(0, dtype=np.int64))


def bit_column(words: Ints, bit: int) -> Bits:
    """uint8 [rows]: one field's bit."""
    return ((words[:, bit // WORD] >> (bit % WORD)) & 1).astype(np.uint8)
