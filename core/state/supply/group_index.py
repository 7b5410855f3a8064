"""Whole groups of exactly n rows of a supply, kept as the supply's rows, the groups' sizes and memberships change."""

from typing import Literal

import numpy as np

from core.arrays import Bits, Flags, Ints, grown

from .index_set import BLOCK, IndexSet
from .marks import NEVER, Look, Marks, in_blocks, together
from .shared import Table

GroupBy = Literal["group_id", "position"]
_OUT_OF_REACH = -(2**40)


class GroupIndex:
    """Groups of n rows `by` group id, or by position: rows k*n … k*n+n-1 ever inserted. `whole`: those to be had."""

    __slots__ = ("_base", "_counted", "_look", "_ready", "_sized", "by", "n", "whole")

    def __init__(self, by: GroupBy, n: int, table: Table) -> None:
        self.by, self.n = by, n
        rows = table.rows
        self._base = int(rows.position[1]) // n if rows.n > 1 else rows.positions // n  # no row comes before row 1
        self._ready = np.zeros(BLOCK, np.int64)  # rows of each group that are counted
        self._counted = IndexSet()
        self._look = Look()
        self._sized = NEVER
        self.whole = IndexSet()

    def refresh(self, table: Table, ready: IndexSet, rows: tuple[Marks, ...], sized: Marks, most: int) -> bool:
        """Look at blocks where `rows` of the supply changed or got groups, then at groups that changed by that.

        False while some of more than `most` blocks are left.
        """
        blocks = self._look.take(table.rows.n, most, *rows)
        parts = [
            self._count(table, rows, step)
            for rows, step in zip(self._counted.replace(blocks, self._bits(table, ready, blocks)), (1, -1), strict=True)
        ]
        self._weigh(table, together(*parts, self._resized(table, sized)))
        return self._look.is_over

    def _bits(self, table: Table, ready: IndexSet, blocks: Ints) -> Bits:
        """A row without a group is of none that is whole, and is counted once it has one."""
        bits = in_blocks(ready.bits, blocks)
        if self.by == "group_id":
            bits &= in_blocks(table.groups.number, blocks) > 0
        return bits

    def _count(self, table: Table, rows: Ints, step: int) -> Ints:
        """These rows came (step -1: went). Returns the blocks of their groups."""
        if not len(rows):
            return rows
        numbers = self._numbers(table, rows)
        highest = int(numbers.max())
        if highest >= len(self._ready):
            self._ready = grown(self._ready, highest * 5 // 4 + 1, 0)
        np.add.at(self._ready, numbers, step)
        is_in = np.zeros(highest // BLOCK + 1, np.bool_)
        is_in[numbers // BLOCK] = True
        return np.flatnonzero(is_in)

    def _numbers(self, table: Table, rows: Ints) -> Ints:
        if self.by == "group_id":
            return table.groups.number[rows].astype(np.int64)
        return np.asarray(table.rows.position[rows] // self.n - self._base)

    def _resized(self, table: Table, sized: Marks) -> Ints:
        """Blocks of groups that have another size than before."""
        if self.by == "position":
            return np.empty(0, np.int64)
        blocks = sized.since(self._sized, table.groups.count)
        self._sized = sized.now
        return blocks

    def _weigh(self, table: Table, blocks: Ints) -> None:
        if len(blocks):
            whole = in_blocks(self._ready, blocks) == self.n
            if self.by == "group_id":
                whole &= in_blocks(table.groups.size, blocks) == self.n
            self.whole.replace(blocks, whole.view(np.uint8))

    def take(self, table: Table, groups: int) -> Ints:
        """Rows of up to `groups` whole groups, oldest group first: int64 [groups * n]."""
        while True:
            chosen = self.whole.lowest(groups)
            members = self._members(table, chosen)
            mixed = _mixed(table, members)
            if not mixed.any():
                return members.reshape(-1)
            self.whole.discard(chosen[mixed])
            self._ready[chosen[mixed]] = _OUT_OF_REACH  # a row's group is set once

    def _members(self, table: Table, numbers: Ints) -> Ints:
        if self.by == "group_id":
            return table.groups.members(numbers, table.rows.is_live, self.n)
        known = table.rows.position[: table.rows.n]
        heads = np.searchsorted(known, (numbers + self._base) * self.n)
        return heads[:, None] + np.arange(self.n)


def _mixed(table: Table, members: Ints) -> Flags:
    """bool [windows]: of two group ids, and so never whole."""
    numbers = table.groups.number[members]
    highest = numbers.max(axis=1, initial=0)
    return np.asarray(((numbers != highest[:, None]) & (numbers > 0)).any(axis=1))
