"""The largest differencing method: splits weights into parts of equal counts by merging the widest splits first. Pure.

N. Karmarkar and R. M. Karp, "The differencing method of set partitioning", UCB/CSD 82/113, 1982. For equal counts it
starts from runs of as many weights as there are parts (W. Michiels, J. Korst, E. Aarts, J. van Leeuwen, "Performance
ratios for the differencing method applied to the balanced number partitioning problem", STACS 2003).
"""

import heapq
from dataclasses import dataclass
from typing import Union

import numpy as np

from core.arrays import Ints
from core.state.where import Floats

NOBODY = -1
Tree = Union["_Run", "_Merged"]


@dataclass(frozen=True, slots=True)
class _Run:
    """As many positions (NOBODY: none) as there are parts, heaviest first: each part gets one."""

    positions: Ints


@dataclass(frozen=True, slots=True)
class _Merged:
    """Place `order[i]` of one and place `-1 - order[i]` of the other stand together at place i."""

    one: Tree
    other: Tree
    order: Ints


def differenced(weights: Floats, parts: int) -> list[Ints]:
    """`parts` vectors of positions in `weights`, ascending each; counts differ by one at most. O(n log n)."""
    return _gathered(_merged(weights, parts), len(weights), parts)


def _merged(weights: Floats, parts: int) -> Tree | None:
    """The two whose sums are farthest apart are merged, heavy upon light, until one is left."""
    padded = np.append(weights, 0.0)  # what NOBODY weighs
    runs = enumerate(_runs(weights, parts))
    heap = [_entry(padded[positions], number, _Run(positions)) for number, positions in runs]
    heapq.heapify(heap)
    number = len(heap)
    while len(heap) > 1:
        _, _, sums, one = heapq.heappop(heap)
        _, _, others, other = heap[0]
        together = sums + others[::-1]
        order = np.argsort(-together, kind="stable")
        heapq.heapreplace(heap, _entry(together[order], number, _Merged(one, other, order)))
        number += 1
    return heap[0][3] if heap else None


def _entry(sums: Floats, number: int, tree: Tree) -> tuple[float, int, Floats, Tree]:
    return float(sums[-1] - sums[0]), number, sums, tree


def _runs(weights: Floats, parts: int) -> list[Ints]:
    """Positions by weight in runs of `parts`, heaviest first in each; the lightest run is filled up with NOBODY."""
    ascending = np.argsort(weights, kind="stable")
    missing = -len(ascending) % parts
    runs = list(np.concatenate([np.full(missing, NOBODY), ascending]).reshape(-1, parts)[:, ::-1])
    if missing:
        runs[0] = runs[0][np.argsort(-np.append(weights, 0.0)[runs[0]], kind="stable")]
    return runs


def _gathered(tree: Tree | None, count: int, parts: int) -> list[Ints]:
    """From the top down: which part each position ended in."""
    part_of = np.zeros(count + 1, np.int64)
    waiting = [] if tree is None else [(tree, np.arange(parts))]
    while waiting:
        node, targets = waiting.pop()
        if isinstance(node, _Run):
            part_of[node.positions] = targets
            continue
        ours = np.empty(parts, np.int64)
        ours[node.order] = targets
        waiting += [(node.one, ours), (node.other, ours[::-1])]
    return by_part(part_of[:count], parts)


def by_part(part_of: Ints, parts: int) -> list[Ints]:
    """From the part of each position, the positions of each part."""
    ends = np.cumsum(np.bincount(part_of, minlength=parts))
    return np.split(np.argsort(part_of, kind="stable"), ends[:-1])
