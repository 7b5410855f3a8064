"""Rows are found by index and by key, live or clearing: as a look at each says, for runs and for any other lists."""

import numpy as np
import pytest

from core.arrays import Ints
from core.state.rows import RUN, Rows
from core.state.transitions import CLEARING, LIVE

FIRST, COUNT = 7, 3 * RUN


def made(seed: int) -> Rows:
    """Rows with a gap in their indexes; some have a key, some are gone, some are clearing."""
    chance = np.random.default_rng(seed)
    rows = Rows()
    for first in (FIRST, FIRST + COUNT + 5):
        rows.add(first, COUNT, [b'"k%d"' % index for index in range(first, first + COUNT)])
    rows.add(FIRST + 3 * COUNT, RUN, None)
    rows.remove(_some(rows, chance))
    rows.hide(_some(rows, chance))
    rows.drop(rows.clearing()[::2], with_tombstones=bool(seed % 2))
    rows.show(rows.clearing()[::2])
    return rows


def _some(rows: Rows, chance: np.random.Generator) -> Ints:
    return np.sort(chance.choice(rows.live(), 40, replace=False))


def wanted(chance: np.random.Generator) -> list[Ints]:
    """Runs, across the gap too, and lists in no order."""
    every = np.arange(FIRST - 3, FIRST + 4 * COUNT)
    starts = [*chance.integers(0, len(every) - 2 * RUN, 4).tolist(), 0]
    return [every, chance.permutation(every), every[:0], *(every[at : at + 2 * RUN] for at in starts)]


@pytest.mark.parametrize("seed", range(6))
def test_an_index_is_found_as_a_look_at_each_row_says(seed: int) -> None:
    rows = made(seed)
    there = {int(index): row for row, index in enumerate(rows.global_index[: rows.n].tolist())}
    for indexes in wanted(np.random.default_rng(seed)):
        for locate, states in ((rows.locate, (LIVE,)), (rows.locate_held, (LIVE, CLEARING))):
            rows_of = [there.get(index, 0) for index in indexes.tolist()]
            assert locate(indexes).tolist() == [row if rows.state[row] in states else 0 for row in rows_of]


@pytest.mark.parametrize("seed", range(6))
def test_a_key_is_found_while_its_row_is_live(seed: int) -> None:
    rows = made(seed)
    keys = [b'"k%d"' % index for index in range(FIRST - 2, FIRST + 4 * COUNT)]
    live = {key: int(rows.global_index[row]) for row, key in named(rows, LIVE)}
    clearing = {key: int(rows.global_index[row]) for row, key in named(rows, CLEARING)}
    assert live
    assert clearing
    assert rows.find(keys) == [live.get(key) for key in keys]
    assert rows.find_held(keys) == [{**live, **clearing}.get(key) for key in keys]
    assert rows.clearing_of(keys) == clearing.keys()
    assert rows.clearing_names == len(clearing)


def test_keys_are_there_while_a_live_row_has_one() -> None:
    rows = Rows()
    assert not rows.has_keys
    named_rows = rows.add(0, 2, [b'"a"', b'"b"'])
    rows.add(2, 1, None)
    assert rows.has_keys
    rows.hide(named_rows)
    assert not rows.has_keys
    rows.show(named_rows[:1])
    assert rows.has_keys
    rows.drop(named_rows[1:], with_tombstones=True)
    rows.remove(named_rows[:1])
    assert not rows.has_keys
    assert rows.keys is None
    assert rows.tombstones == {b'"b"': 1}


def named(rows: Rows, state: int) -> list[tuple[int, bytes]]:
    """Rows of this state that have a key, with it."""
    assert rows.keys is not None
    return [
        (int(row), rows.keys[row]) for row in np.flatnonzero(rows.state[: rows.n] == state) if rows.keys[row] != b"null"
    ]
