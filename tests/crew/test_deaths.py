"""The draw of a chaos run: the same from the same seed, and early enough that who dies leaves work behind."""

from collections import Counter

from crew.deaths import Deaths, draw

TOTALS = {"rollout": 8, "actor": 64, "ref": 64}
WANTED = {"rollout": Deaths(3, ("rollout",)), "rank": Deaths(2, ("ref", "actor")), "service": Deaths(1, tuple(TOTALS))}


def test_the_seed_says_who_dies_and_when() -> None:
    assert draw(3, TOTALS, WANTED) == draw(3, TOTALS, WANTED)
    assert len({tuple(draw(seed, TOTALS, WANTED)) for seed in range(50)}) == 50


def test_of_every_kind_some_die_while_there_is_work_left() -> None:
    for seed in range(200):
        deaths = draw(seed, TOTALS, WANTED)
        assert Counter(death.kind for death in deaths) == {kind: deaths.times for kind, deaths in WANTED.items()}
        assert all(1 <= death.after <= 0.8 * TOTALS[death.bar] for death in deaths), seed
