"""Rows in an order are those that a sort of all would give, however large runs are and whatever comes and goes."""

import random
from typing import Any

import numpy as np
import pytest

import core.state.supply.sampler_index
from core.state.supply.index_set import IndexSet
from core.state.supply.sampler_index import RankedRows


@pytest.mark.parametrize("kind", [np.float64, np.uint64, np.complex128])
@pytest.mark.parametrize("seed", range(12))
def test_rows_in_an_order_are_those_of_a_sort(monkeypatch: pytest.MonkeyPatch, seed: int, kind: Any) -> None:
    monkeypatch.setattr(core.state.supply.sampler_index, "LARGE", 16)
    monkeypatch.setattr(core.state.supply.sampler_index, "FRONT", 4)
    monkeypatch.setattr(core.state.supply.sampler_index, "BLOCK", 8)
    chance = random.Random(seed)
    ready, ranked = IndexSet(), RankedRows()
    values = np.zeros(400, kind)
    were_large = False
    for _ in range(150):
        rows = np.array(sorted(chance.sample(range(400), chance.choice([1, 1, 2, 20, 60]))), np.int64)
        if chance.random() < 0.6:
            values[rows] = [chance.randrange(50) for _ in rows]
            ready.add(rows)
        else:
            ready.discard(rows)
        ranked.note(rows)
        while not ranked.refresh(ready, values.__getitem__, chance.choice([1, 5, 1000])):
            pass
        were_large |= len(ranked._large) > 1
        inside = ready.all()
        meant = inside[np.lexsort((inside, values[inside]))]
        k = chance.choice([1, 3, 30, 500])
        assert ranked.lowest(k).tolist() == meant[:k].tolist()
        assert ranked.count == len(inside)
    assert were_large


def test_a_claim_looks_at_the_front_and_not_at_every_large_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core.state.supply.sampler_index, "LARGE", 64)
    ready, ranked = IndexSet(), RankedRows()
    for first in range(0, 64 * 100, 64):
        rows = np.arange(first, first + 64)
        ready.add(rows)
        ranked.note(rows)
        ranked.refresh(ready, lambda rows: rows % 97 + 0.5)
    assert len(ranked._large) > 30
    looked: list[object] = []
    first_of = RankedRows._first
    monkeypatch.setattr(RankedRows, "_first", lambda self, run, k: looked.append(run) or first_of(self, run, k))
    ranked.lowest(8)
    once, looked[:] = len(looked), []
    ranked.lowest(8)
    assert once > 30
    assert len(looked) <= 3
