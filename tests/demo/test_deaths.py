"""The draw of a chaos run: the same from the same seed, and early enough that who dies leaves work behind."""

from collections import Counter

from demo.deaths import TIMES, draw
from demo.roles import ACTOR, ROLLOUT
from demo.samples import COMPUTED

TOTALS = {ROLLOUT: 8, ACTOR: 64} | dict.fromkeys(COMPUTED, 64)


def test_the_seed_says_who_dies_and_when() -> None:
    assert draw(3, TOTALS) == draw(3, TOTALS)
    assert len({tuple(draw(seed, TOTALS)) for seed in range(50)}) == 50


def test_of_every_kind_some_die_while_there_is_work_left() -> None:
    for seed in range(200):
        deaths = draw(seed, TOTALS)
        assert Counter(death.kind for death in deaths) == TIMES
        assert all(1 <= death.after <= 0.8 * TOTALS[death.bar] for death in deaths), seed
