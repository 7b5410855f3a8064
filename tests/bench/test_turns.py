"""Rounds, medians and ratios: the arithmetic that everything is judged by."""

import pytest

from bench.turns import Runs, distribution, in_turns, percentile, ratio, timed


def test_sides_take_turns_and_every_second_round_goes_backwards() -> None:
    order: list[str] = []

    def side(name: str) -> list[float]:
        order.append(name)
        return [1.0]

    runs = in_turns(range(3), {"a": lambda: side("a"), "b": lambda: side("b")})
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert runs["a"].rounds == ((1.0,), (1.0,), (1.0,))


def test_the_ratio_is_the_median_of_the_rounds_ratios() -> None:
    theirs = Runs(((10.0, 10.0, 99.0), (20.0,), (6.0,)))
    ours = Runs(((1.0, 1.0, 50.0), (10.0,), (2.0,)))
    assert ratio(theirs, ours) == 3.0  # of 10, 2 and 3: one slow round decides nothing


def test_a_summary_has_median_tail_and_spread() -> None:
    runs = Runs(((0.001, 0.002, 0.003), (0.004, 0.005, 0.1)))
    assert runs.seconds() == {
        "median_ms": 3.5,
        "p99_ms": 100.0,
        "spread_ms": [2.0, 5.0],
        "calls": 6,
        "rounds": 2,
    }
    assert Runs(((100.0,), (300.0,))).rate() == {"per_s": 200, "spread_per_s": [100, 300], "rounds": 2}


def test_a_percentile_is_a_value_that_was_measured() -> None:
    assert percentile([1.0, 2.0, 3.0, 50.0], 99) == 50.0
    assert percentile(list(range(1, 1001)), 99) == 990.0


def test_a_distribution_rises_to_the_largest() -> None:
    found = distribution([0.003, 0.001, 0.002])
    assert found["ms"] == sorted(found["ms"])
    assert (found["ms"][0], found["ms"][-1], found["percent"][-1]) == (1.0, 3.0, 100.0)


def test_each_call_is_timed() -> None:
    calls: list[int] = []
    took = timed(lambda: calls.append(1), 5)
    assert (len(calls), len(took)) == (5, 5)
    assert min(took) >= 0


def test_rounds_of_sides_that_do_not_match_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        ratio(Runs(((1.0,),)), Runs(((1.0,), (1.0,))))
