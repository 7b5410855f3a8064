"""The account adds up for a right step, and names each thing that is wrong in any other."""

import pytest

from crew.account import Account, Tally

TASKS = {"p": ("one", "two")}


def tally(task: str, put: list[int] = (), consumed: list[int] = (), deleted: list[int] = (), **more: object) -> Tally:
    made = Tally(task, {"p": [*put]}, {"p": [*consumed]}, {"p": [*deleted]})
    for name, value in more.items():
        setattr(made, name, value)
    return made


def right() -> list[Tally]:
    return [
        tally("writer", put=[4, 5], stored=["4@f", "5@f"]),
        tally("writer", put=[6], stored=["6@f"]),
        tally("one", consumed=[4, 5, 6]),
        tally("two", consumed=[6]),
        tally("two", consumed=[4, 5]),
        tally("clear", deleted=[4, 5, 6], removed=3),
    ]


def faults(*changes: tuple[int, str, list[int] | list[str] | int]) -> list[str]:
    tallies = right()
    for at, books, value in changes:
        setattr(tallies[at], books, {"p": value} if books in ("put", "consumed", "deleted") else value)
    return Account({"p": 3}, TASKS, tallies).faults()


def test_a_right_step_has_no_faults() -> None:
    assert faults() == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ((2, "consumed", [4, 5]), "p: one consumed, missing: 6"),
        ((2, "consumed", [4, 5, 5, 6]), "p: one consumed more than once: 5"),
        ((2, "consumed", [4, 5, 6, 7]), "p: one consumed, never put: 7"),
        ((4, "consumed", [4, 5, 6]), "p: two consumed more than once: 6"),
        ((4, "consumed", []), "p: two consumed, missing: 4, 5"),
        ((5, "deleted", [4, 6]), "p: deleted, missing: 5"),
        ((5, "deleted", [4, 4, 5, 6]), "p: deleted more than once: 4"),
        ((5, "removed", 2), "storage: 3 values put, 2 deleted"),
        ((1, "stored", ["5@f"]), "storage: 1 names written twice"),
    ],
)
def test_each_fault_is_told_in_one_line(change: tuple[int, str, list[int]], told: str) -> None:
    assert faults(change) == [told]


def test_a_sample_put_twice_is_a_fault_although_all_agree_on_it() -> None:
    assert faults((1, "put", [5])) == [
        "p: put more than once: 5",
        "p: one consumed, never put: 6",
        "p: two consumed, never put: 6",
        "p: deleted, never put: 6",
    ]


def test_a_sample_lost_everywhere_is_missed_by_the_expectation() -> None:
    lost = faults((1, "put", []), (1, "stored", []), (2, "consumed", [4, 5]), (3, "consumed", []))
    lost_and_gone = faults(
        (1, "put", []),
        (1, "stored", []),
        (2, "consumed", [4, 5]),
        (3, "consumed", []),
        (5, "deleted", [4, 5]),
        (5, "removed", 2),
    )

    assert "p: 2 samples put, 3 expected" in lost
    assert lost_and_gone == ["p: 2 samples put, 3 expected"]


def test_a_task_that_never_ran_is_missing_everything() -> None:
    only_writer = Account({"p": 3}, TASKS, [*right()[:2], right()[5]])

    assert only_writer.faults() == ["p: one consumed, missing: 4, 5, 6", "p: two consumed, missing: 4, 5, 6"]


def test_long_lists_are_cut() -> None:
    many = Account({"p": 20}, {"p": ("one",)}, [tally("writer", put=list(range(20)))]).faults()

    assert many[0] == "p: one consumed, missing: 0, 1, 2, 3, 4 and 15 more"
