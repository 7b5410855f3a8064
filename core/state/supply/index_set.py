"""A set of small ints that gives its lowest and highest members fast: the rows of a supply, or groups of rows."""

import numpy as np

from core.arrays import Bits, Flags, Ints, filled, grown

BLOCK = 1024


class IndexSet:
    """A set of small ints: add, discard, count, and the lowest k, found through the counts of blocks of 1,024."""

    __slots__ = ("bits", "blocks", "count")

    def __init__(self) -> None:
        self.bits: Bits = filled(BLOCK, 0, np.uint8)
        self.blocks: Ints = np.zeros(1, np.int64)
        self.count = 0

    def add(self, items: Ints) -> Ints:
        """Put these in (each named once); returns those that were not in."""
        if len(items):
            self._reserve(int(items.max()))
        return self._change(items[self.bits[items] == 0], 1)

    def discard(self, items: Ints) -> Ints:
        """Take these out (each named once); returns those that were in."""
        inside = items[items < len(self.bits)]
        return self._change(inside[self.bits[inside] == 1], -1)

    def _change(self, items: Ints, step: int) -> Ints:
        self.bits[items] = step > 0
        np.add.at(self.blocks, items // BLOCK, step)
        self.count += step * len(items)
        return items

    def set(self, items: Ints, inside: Flags) -> tuple[Ints, Ints]:
        """Of these items (each named once) exactly those `inside` are in; what came, what went."""
        count = np.count_nonzero(inside)
        came = self.add(items[inside] if count < len(items) else items) if count else items[:0]
        went = self.discard(items[~inside] if count else items) if count < len(items) else items[:0]
        return came, went

    def flags(self, items: Ints) -> Flags:
        """bool [items]: which are in."""
        try:
            return np.asarray(self.bits[items] == 1)
        except IndexError:
            return np.isin(items, self.has(items))

    def replace(self, blocks: Ints, bits: Bits) -> tuple[Ints, Ints]:
        """Of these blocks (ascending) exactly what `bits` (uint8 [blocks, 1,024]) has is in; what came, what went."""
        if not len(blocks):
            return blocks, blocks
        self._reserve(int(blocks[-1]) * BLOCK)
        kept = self.bits.reshape(-1, BLOCK)
        places = np.flatnonzero(kept[blocks] != bits)
        if not len(places):
            return places, places
        kept[blocks] = bits
        counts = np.count_nonzero(bits, axis=1)
        self.count += int(counts.sum() - self.blocks[blocks].sum())
        self.blocks[blocks] = counts
        came = bits.reshape(-1)[places] == 1
        items = blocks[places // BLOCK] * BLOCK + places % BLOCK
        return items[came], items[~came]

    def _reserve(self, item: int) -> None:
        if item >= len(self.bits):
            blocks = max(item // BLOCK + 1, len(self.blocks) * 5 // 4)
            self.bits = grown(self.bits, blocks * BLOCK, 0)
            self.blocks = grown(self.blocks, blocks, 0)

    def has(self, items: Ints) -> Ints:
        """Those of `items` that are in."""
        inside = items[items < len(self.bits)]
        return np.asarray(inside[self.bits[inside] == 1])

    def all(self) -> Ints:
        """Everything that is in, ascending."""
        return np.flatnonzero(self.bits)

    def lowest(self, k: int) -> Ints:
        """The k lowest, or all if there are fewer, ascending. Costs k and the number of blocks."""
        first = int(self.blocks.astype(np.bool_).argmax())
        if self.blocks[first] >= k:
            return np.flatnonzero(self.bits[first * BLOCK : (first + 1) * BLOCK])[:k] + first * BLOCK
        blocks = np.flatnonzero(self.blocks)
        enough = int(np.searchsorted(np.cumsum(self.blocks[blocks]), k)) + 1
        chosen = blocks[:enough]
        places = np.flatnonzero(self.bits.reshape(-1, BLOCK)[chosen])[:k]
        return chosen[places // BLOCK] * BLOCK + places % BLOCK

    def highest(self, k: int) -> Ints:
        """The k highest, or all if there are fewer, descending. Costs k and the number of blocks."""
        blocks = np.flatnonzero(self.blocks)[::-1]
        enough = int(np.searchsorted(np.cumsum(self.blocks[blocks]), k)) + 1
        chosen = blocks[:enough][::-1]
        places = np.flatnonzero(self.bits.reshape(-1, BLOCK)[chosen])[::-1][:k]
        return chosen[places // BLOCK] * BLOCK + places % BLOCK
