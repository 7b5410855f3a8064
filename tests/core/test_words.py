"""Bit words are the same on the host, on a device of torch, and as plain numbers in a list."""

import os
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.state.cells import readiness
from core.state.cells.readiness import WORD, HostWords, NewWords, StatusWords, bit_column, count_bits, covers, mask_of

from .world import DEVICE_VARIABLE, on_torch

KINDS: dict[str, NewWords] = {"host": HostWords, "torch": on_torch("cpu").words}
if os.environ.get(DEVICE_VARIABLE) == "npu":
    KINDS["npu"] = on_torch("npu:0").words


@dataclass
class Plain:
    """A number per row, whose bits are the fields."""

    rows: list[int] = field(default_factory=list)
    width: int = 1

    def reserve(self, rows: int, fields: int) -> None:
        self.width = max(self.width, -(-fields // WORD))
        self.rows = (self.rows + [0] * rows)[:rows]

    def compact(self, rows: list[int], capacity: int) -> None:
        self.rows = [self.rows[row] for row in rows] + [0] * (capacity - len(rows))

    def words(self, rows: list[int]) -> np.ndarray:
        return as_words([self.rows[row] for row in rows], self.width)


def as_words(numbers: list[int], width: int) -> np.ndarray:
    return np.array([mask_of(bits_of(number), width) for number in numbers], np.int64).reshape(-1, width)


def bits_of(number: int) -> list[int]:
    return [bit for bit in range(number.bit_length()) if number >> bit & 1]


def places(rows: list[int]) -> np.ndarray:
    return np.array(rows, np.int64)


def step(words: StatusWords, plain: Plain, data: st.DataObject) -> None:
    """One change or question, of both."""
    count, fields = len(plain.rows), plain.width * WORD
    some = st.lists(st.integers(0, count - 1), max_size=6) if count else st.just([])
    each = data.draw(st.lists(st.integers(0, count - 1), max_size=count, unique=True) if count else some)
    match data.draw(st.sampled_from(["reserve", "keep", "write", "restore", "gather", "complete"])):
        case "reserve":
            rows, wanted = data.draw(st.integers(0, 9)), data.draw(st.sampled_from([0, 1, 64, 65, 130]))
            words.reserve(rows, wanted)
            plain.reserve(rows, wanted)
        case "keep":
            capacity = len(each) + data.draw(st.integers(0, 3))
            words.compact(places(each), capacity)
            plain.compact(each, capacity)
        case "write":
            numbers = [data.draw(st.integers(0, 2**fields - 1)) for _ in each]
            words.write(places(each), as_words(numbers, plain.width))
            for row, number in zip(each, numbers, strict=True):
                plain.rows[row] = number
        case "restore":
            plain.width = data.draw(st.integers(1, 3))
            plain.rows = data.draw(st.lists(st.integers(0, 2 ** (plain.width * WORD) - 1), max_size=5))
            words.restore(as_words(plain.rows, plain.width))
        case "gather":
            rows = data.draw(some)
            assert np.array_equal(words.gather(places(rows)), plain.words(rows))
            assert np.array_equal(words.gather(slice(1, 3)), as_words(plain.rows[1:3], plain.width))
        case _:
            rows, mask = data.draw(some), data.draw(st.sets(st.integers(0, fields - 1), max_size=4))
            found = words.complete(places(rows), mask_of(mask, plain.width))
            assert found.dtype == np.uint8
            assert found.tolist() == [int(mask <= set(bits_of(plain.rows[row]))) for row in rows]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data(), steps=st.integers(1, 12))
def test_words_are_what_plain_numbers_are(kind: str, data: st.DataObject, steps: int) -> None:
    plain, words = Plain([0] * 4), KINDS[kind](4)
    for _ in range(steps):
        step(words, plain, data)
        assert (words.capacity, words.width) == (len(plain.rows), plain.width)
        assert np.array_equal(words.gather(slice(None)), as_words(plain.rows, plain.width))


@pytest.mark.parametrize("kind", KINDS)
def test_others_like_them_are_zero_and_of_their_own(kind: str) -> None:
    words = KINDS[kind](3)
    words.write(places([1]), as_words([5], 1))
    others = words.like(2)
    assert type(others) is type(words)
    assert others.gather(slice(None)).tolist() == [[0], [0]]
    others.write(places([0]), as_words([9], 1))
    assert words.gather(slice(None)).tolist() == [[0], [5], [0]]


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("few", [0, 100], ids=["many rows", "few rows"])
def test_the_functions_of_the_host_read_words_as_numbers(width: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "_FEW", few)
    numbers = [0, 1, 2**63, 2**63 + 1, 2 ** (width * WORD) - 1]
    words, wanted = as_words(numbers, width), {0, 63}
    assert covers(words, mask_of(wanted, width)).tolist() == [wanted <= set(bits_of(number)) for number in numbers]
    assert bit_column(words, 63).tolist() == [number >> 63 & 1 for number in numbers]
    assert count_bits(words).tolist() == [sum(number >> bit & 1 for number in numbers) for bit in range(width * WORD)]
    same = words[[3] * 7]
    assert count_bits(same).tolist() == [7 * (numbers[3] >> bit & 1) for bit in range(width * WORD)]
