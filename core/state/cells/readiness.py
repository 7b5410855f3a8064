"""Production status as bit words: bit f % 64 of word f // 64 of a row says whether field f is produced for it.

Row 0 is the *absent row*: nobody's, all zero. Whatever is not held is looked up there, so that no lookup needs a mask.
All tensor work of the service is here; the number of operations never depends on the number of rows.
"""

from collections.abc import Iterable

import numpy as np
import torch

from core.arrays import Bits, Flags, Ints

WORD = 64


def mask_of(bits: Iterable[int], words: int) -> Ints:
    """int64 [words]: the given bit numbers set."""
    out = [0] * words
    for bit in bits:
        out[bit // WORD] |= 1 << (bit % WORD)
    return np.array(out, np.uint64).view(np.int64)


class StatusWords:
    """int64 [rows, words] on a tensor device; `width` is words per row. Subclasses differ in how they reach it."""

    __slots__ = ("device", "width", "words")

    def __init__(self, device: torch.device, rows: int) -> None:
        self.device = device
        self._set(torch.zeros((rows, 1), dtype=torch.int64, device=device))

    def _set(self, words: torch.Tensor) -> None:
        self.words, self.width = words, words.shape[1]

    def restore(self, words: Ints) -> None:
        """These words, int64 [rows, words], in place of what is there."""
        self._set(torch.from_numpy(words).to(self.device))

    def reserve(self, rows: int, fields: int) -> None:
        """Room for this many rows and fields; what is there stays."""
        width = max(self.width, -(-fields // WORD))
        if rows == len(self.words) and width == self.width:
            return
        old = self.words
        words = torch.zeros((rows, width), dtype=torch.int64, device=self.device)
        kept = min(rows, len(old))
        words[:kept, : old.shape[1]] = old[:kept]
        self._set(words)

    def keep(self, rows: Ints, capacity: int) -> None:
        """Only these rows remain, in this order."""
        words = torch.zeros((capacity, self.width), dtype=torch.int64, device=self.device)
        words[: len(rows)] = self.words.index_select(0, torch.from_numpy(rows).to(self.device))
        self._set(words)

    def gather(self, rows: slice | Ints) -> Ints:
        """The words of these rows: int64 [len(rows), words], on the host, to be read before anything is written."""
        found = self.words[rows] if isinstance(rows, slice) else self._gather(rows)
        return np.asarray(found.cpu().numpy())

    def complete(self, rows: Ints, mask: Ints) -> Bits:
        """uint8 [rows]: 1 where every bit of `mask` is set. One gather, one AND, one compare."""
        wanted = torch.from_numpy(mask).to(self.device)
        return ((self._gather(rows) & wanted) == wanted).all(1).cpu().numpy().view(np.uint8)

    def write(self, rows: Ints, words: Ints) -> None:
        """Replace the words of these rows (each named once)."""
        self.words.index_copy_(0, torch.from_numpy(rows).to(self.device), torch.from_numpy(words).to(self.device))

    def _gather(self, rows: Ints) -> torch.Tensor:
        return self.words.index_select(0, torch.from_numpy(rows).to(self.device))


class HostWords(StatusWords):
    """On the CPU: the same memory through numpy, whose calls on few rows cost a third of torch's (decision 0007)."""

    __slots__ = ("_view",)

    def _set(self, words: torch.Tensor) -> None:
        super()._set(words)
        self._view: Ints = words.numpy()

    def gather(self, rows: slice | Ints) -> Ints:
        return self._view[rows]

    def complete(self, rows: Ints, mask: Ints) -> Bits:
        return covers(self._view[rows], mask).view(np.uint8)

    def write(self, rows: Ints, words: Ints) -> None:
        self._view[rows] = words


def status_words(device: torch.device, rows: int) -> StatusWords:
    """Bit words of `rows` rows on `device`."""
    return HostWords(device, rows) if device.type == "cpu" else StatusWords(device, rows)


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
