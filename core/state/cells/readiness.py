"""Production status as bit words: bit f % 64 of word f // 64 of a row says whether field f is produced for it.

Row 0 is the *absent row*: it is no sample's and all zero. Indexes that are not held map to it, so no lookup needs a
mask. The number of operations never depends on the number of rows. Words on a tensor device are in torch_readiness.py.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from core.arrays import Bits, Flags, Ints

WORD = 64
_FEW = 2048  # rows whose bits are spread out and summed up


def mask_of(bits: Iterable[int], words: int) -> Ints:
    """int64 [words]: the given bit numbers set."""
    out = [0] * words
    for bit in bits:
        out[bit // WORD] |= 1 << (bit % WORD)
    return np.array(out, np.uint64).view(np.int64)


class StatusWords(ABC):
    """int64 [capacity, width] on one device. Rows, masks and answers are numpy arrays, wherever the words are."""

    __slots__ = ("capacity", "width")
    capacity: int
    width: int

    @abstractmethod
    def like(self, rows: int) -> "StatusWords":
        """New words for this many rows on the same device, all zero."""

    @abstractmethod
    def restore(self, words: Ints) -> None:
        """Replace all words by these, int64 [rows, words]. The caller must not write to them afterwards."""

    def reserve(self, rows: int, fields: int) -> None:
        """Make room for this many rows and fields; the words stay."""
        width = max(self.width, -(-fields // WORD))
        if (rows, width) != (self.capacity, self.width):
            self._move(slice(rows), rows, width)

    def compact(self, rows: Ints, capacity: int) -> None:
        """Only these rows remain, in this order."""
        self._move(rows, capacity, self.width)

    @abstractmethod
    def _move(self, kept: slice | Ints, capacity: int, width: int) -> None:
        """Copy these rows to the start of new words of this size; the rest is zero."""

    @abstractmethod
    def gather(self, rows: slice | Ints) -> Ints:
        """The words of these rows: int64 [len(rows), words], on the host, valid until the next write."""

    @abstractmethod
    def complete(self, rows: Ints, mask: Ints) -> Bits:
        """uint8 [rows]: 1 where every bit of `mask` is set. One gather, one AND, one compare."""

    @abstractmethod
    def write(self, rows: Ints, words: Ints) -> None:
        """Replace the words of these rows (each named once)."""


NewWords = Callable[[int], StatusWords]
"""Makes words for a number of rows, all zero, on one device."""


class HostWords(StatusWords):
    """Words in the host's memory, as numpy arrays: for few rows a call costs a third of torch's (decision 0007)."""

    __slots__ = ("_words",)

    def __init__(self, rows: int) -> None:
        self.restore(np.zeros((rows, 1), np.int64))

    def like(self, rows: int) -> "HostWords":
        return HostWords(rows)

    def restore(self, words: Ints) -> None:
        self._words = words
        self.capacity, self.width = words.shape

    def _move(self, kept: slice | Ints, capacity: int, width: int) -> None:
        found = self._words[kept]
        words = np.zeros((capacity, width), np.int64)
        words[: len(found), : self.width] = found
        self.restore(words)

    def gather(self, rows: slice | Ints) -> Ints:
        return self._words[rows]

    def complete(self, rows: Ints, mask: Ints) -> Bits:
        return covers(self._words[rows], mask).view(np.uint8)

    def write(self, rows: Ints, words: Ints) -> None:
        self._words[rows] = words


def covers(words: Ints, mask: Ints) -> Flags:
    """bool [rows]: `complete` for words that are on the host already."""
    if len(mask) == 1:
        return np.asarray((words[:, 0] & mask[0]) == mask[0])
    return np.asarray(((words & mask) == mask).all(1))


def count_bits(words: Ints) -> Ints:
    """int64 [fields]: for how many of these rows each bit is set. Of many rows most have the same bits."""
    if len(words) <= _FEW:
        return np.asarray(_bits_of(words).sum(0, dtype=np.int64))
    all_have, some_have = reduced(words)
    counts: Ints = len(words) * _bits_of(all_have[None])[0].astype(np.int64)
    for bit in np.flatnonzero(_bits_of((some_have & ~all_have)[None])[0]).tolist():
        counts[bit] = np.count_nonzero(words[:, bit // WORD] & mask_of([bit % WORD], 1))
    return counts


def _bits_of(words: Ints) -> Bits:
    """uint8 [rows, fields]."""
    return np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1, bitorder="little")


def reduced(words: Ints) -> tuple[Ints, Ints]:
    """(the bits that all rows have, the bits that some have): int64 [words] each; all and none without rows."""
    return np.bitwise_and.reduce(words, axis=0), np.bitwise_or.reduce(words, axis=0)


def is_set(words: Sequence[int], bit: int) -> bool:
    """Whether words, as Python ints, have the bit."""
    return bool(words[bit // WORD] >> bit % WORD & 1)


def bit_column(words: Ints, bit: int) -> Bits:
    """uint8 [rows]: one field's bit."""
    return ((words[:, bit // WORD] >> (bit % WORD)) & 1).astype(np.uint8)
