"""The search itself: histories that are known to be good or bad, and all small ones against trying every order."""

import random
from itertools import combinations, permutations

import pytest

from tests.histories.history import UNKNOWN, Operation, out_of_order
from tests.histories.search import linearize
from tests.histories.spec import State, step

SEED = 11


def op(number: int, called: float, returned: float, name: str, *arguments: object, answer: object) -> Operation:
    return Operation(number, name, arguments, called, returned, answer)


def cut(number: int, called: float, name: str, *arguments: object) -> Operation:
    """One that was never answered."""
    return Operation(number, name, arguments, called)


def take(number: int, called: float, returned: float, answer: object, leased: bool = False) -> Operation:
    return op(number, called, returned, "claim", "t", 1, 1, leased, answer=answer)


def is_fine(*history: Operation) -> bool:
    return linearize(history, step, State()).order is not None


A = op(0, 0, 1, "produce", ("a",), answer=1)


def test_one_row_goes_to_one_of_two_claims() -> None:
    assert is_fine(A, take(1, 2, 4, ("a",)), take(2, 3, 5, 0))
    assert is_fine(A, take(1, 2, 4, 0), take(2, 3, 5, ("a",)))


def test_a_claim_that_read_before_the_others_commit_is_refused() -> None:
    assert not is_fine(A, take(1, 2, 4, ("a",)), take(2, 3, 5, ("a",)))


def test_an_answer_from_before_a_write_that_had_ended_is_refused() -> None:
    assert not is_fine(A, take(1, 2, 3, 0))
    assert is_fine(A, take(1, 0.5, 3, 0))
    assert not is_fine(A, op(1, 2, 3, "delete", ("a",), answer=1), op(2, 4, 5, "read", ("a",), answer=(1,)))


def test_two_readers_may_not_see_two_writes_in_two_orders() -> None:
    write_a, write_b = op(0, 0, 9, "produce", ("a",), answer=1), op(1, 0, 9, "produce", ("b",), answer=1)

    def reads(first: int, called: float, a: int | None, b: int | None) -> list[Operation]:
        both = op(first, called, called + 1, "read", ("a", "b"), answer=(a, b))
        return [both]

    assert is_fine(write_a, write_b, *reads(2, 1, 1, None), *reads(3, 3, 1, 1))
    assert not is_fine(write_a, write_b, *reads(2, 1, 1, None), *reads(3, 3, None, 1))


def test_what_was_not_answered_may_have_happened_or_not_and_any_time_later() -> None:
    lost = cut(0, 0, "produce", ("a",))
    assert is_fine(lost, take(1, 1, 2, 0))
    assert is_fine(lost, take(1, 1, 2, ("a",)))
    assert is_fine(lost, take(1, 1, 2, 0), take(2, 3, 4, ("a",)))
    assert not is_fine(lost, take(1, 1, 2, ("a",)), take(2, 3, 4, ("a",)))
    assert not is_fine(cut(0, 2, "produce", ("a",)), take(1, 0, 1, ("a",)))


def test_a_lost_claim_may_have_taken_rows_but_not_half_of_them() -> None:
    rows = op(0, 0, 1, "produce", ("a", "b"), answer=2)
    lost = cut(1, 2, "claim", "t", 2, 2, True)
    assert is_fine(rows, lost, op(2, 3, 4, "counts", "t", answer=(0, 2, 0, 2)))
    assert is_fine(rows, lost, op(2, 3, 4, "counts", "t", answer=(0, 0, 0, 2)))
    assert not is_fine(rows, lost, op(2, 3, 4, "counts", "t", answer=(0, 1, 0, 2)))


def test_an_ack_counts_once_and_again_gives_the_same() -> None:
    leased, said = take(1, 2, 3, ("a",), leased=True), (("a", "accepted"),)
    accepted = op(2, 4, 5, "ack", 1, said, answer=(1, 0, 0, 0))
    again = op(3, 6, 7, "ack", 1, said, answer=(1, 0, 0, 0))
    assert is_fine(A, leased, accepted, again, op(4, 8, 9, "counts", "t", answer=(1, 0, 0, 1)))
    assert not is_fine(A, leased, accepted, again, op(4, 8, 9, "counts", "t", answer=(2, 0, 0, 1)))
    assert not is_fine(A, leased, accepted, take(4, 6, 7, ("a",)))


def test_an_ack_of_rows_deleted_meanwhile_is_lost_or_came_before() -> None:
    leased, gone = take(1, 2, 3, ("a",), leased=True), op(2, 4, 7, "delete", ("a",), answer=1)
    said = (("a", "accepted"),)
    assert is_fine(A, leased, gone, op(3, 5, 6, "ack", 1, said, answer=frozenset("a")))
    assert is_fine(A, leased, gone, op(3, 5, 6, "ack", 1, said, answer=(1, 0, 0, 0)))
    late = op(3, 8, 9, "ack", 1, said, answer=(1, 0, 0, 0))
    assert not is_fine(A, leased, gone, late)


def test_a_verdict_says_how_far_one_could_get() -> None:
    verdict = linearize([A, take(1, 2, 3, ("a",)), take(2, 4, 5, ("a",))], step, State())
    assert [operation.number for operation in verdict.furthest] == [0, 1]
    assert [operation.number for operation in verdict.stuck] == [2]
    assert "#2 4.0000-5.0000 claim('t', 1, 1, False) → ('a',)" in str(verdict)


def test_revisions_that_go_back_are_seen() -> None:
    first = Operation(0, "produce", (("a",),), 0, 1, 1, revision=5)
    second = Operation(1, "counts", ("t",), 2, 3, (0, 0, 0, 1), revision=4)
    assert out_of_order([first, second]) == [(first, second)]
    assert out_of_order([first, Operation(1, "counts", ("t",), 0.5, 3, (0, 0, 0, 1), revision=4)]) == []


# Every order, tried one after the other


def register(state: int, operation: Operation) -> tuple[int, object]:
    """Writes answer what was there before."""
    return (state, state) if operation.name == "read" else (operation.arguments[0], state)


def by_trying(history: list[Operation]) -> bool:
    """What linearizable means, word for word."""
    unknown = [operation for operation in history if operation.answer is UNKNOWN]
    known = [operation for operation in history if operation.answer is not UNKNOWN]
    for size in range(len(unknown) + 1):
        for some in combinations(unknown, size):
            if any(_holds(order) for order in permutations([*known, *some])):
                return True
    return False


def _holds(order: tuple[Operation, ...]) -> bool:
    state = 0
    for at, operation in enumerate(order):
        if any(later.returned < operation.called for later in order[at:]):
            return False
        state, answer = register(state, operation)
        if operation.answer is not UNKNOWN and operation.answer != answer:
            return False
    return True


def some_history(chance: random.Random) -> list[Operation]:
    out = []
    for number in range(5):
        called = chance.randrange(6)
        name, value = chance.choice(["read", "write"]), chance.randrange(2)
        if chance.randrange(4) == 0:
            out.append(Operation(number, name, (value,), called))
        else:
            out.append(Operation(number, name, (value,), called, called + chance.randint(1, 4), chance.randrange(2)))
    return out


@pytest.mark.parametrize("seed", range(SEED, SEED + 4))
def test_the_search_finds_an_order_where_there_is_one_and_only_there(seed: int) -> None:
    chance = random.Random(seed)
    verdicts = []
    for _ in range(150):
        history = some_history(chance)
        verdict = linearize(history, register, 0)
        assert (verdict.order is not None) == by_trying(history), list(map(str, history))
        assert verdict.order is None or _holds(tuple(verdict.order))
        verdicts.append(verdict.order is not None)
    assert 20 < sum(verdicts) < 130
