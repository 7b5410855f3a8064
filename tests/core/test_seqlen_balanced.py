"""`seqlen_balanced`: one split for all ranks, each share fetched by its rank, and the shares that nobody fetches."""

from typing import Any

import msgspec
import numpy as np
import pytest

from batchmeta.wire.requests import Condition
from core.engine import Engine
from core.errors import Invalid, SampleCleared
from core.events import ShareTerms
from core.operations.claim import Claimed, ClaimRequest, NotClaimed, claim_now, explain_claim
from core.operations.consumption import counts_of, reset_consumption
from core.operations.delete import delete
from core.operations.expiry import expire
from core.operations.leases import Ack, ack
from core.operations.partitions import put_partition, seal_partition
from core.reading.batch import View
from core.reading.selectors import Selector
from core.samplers import sampler
from core.state.where import where
from tests.core.test_rank_aware import account, at, check, rows_of, seen, settle
from tests.core.world import Book, add, new_engine, write
from tests.model.compare import dump

P = "p"
META = {"len": 1}


def ready(lengths: list[Any], each: int = 1, partition: str = P, engine: Engine | None = None) -> Engine:
    """Rows with these lengths, in groups of `each`."""
    engine = engine or new_engine()
    ids = [f"g{at // each}" for at in range(len(lengths))]
    cells = [msgspec.json.encode({"m": {"len": length}}) for length in lengths]
    rows = add(engine, partition, len(lengths), custom_meta=cells, group_ids=ids if each > 1 else None)
    write(engine, partition, rows, ["n"])
    return engine


def wanted(
    rank: int, batch: int = 0, size: int = 2, ranks: int = 2, lease_s: float | None = 10.0, **more: Any
) -> ClaimRequest:
    arguments = {"dp_rank": rank, "batch_index": batch, "dp_size": ranks, "weight": more.pop("weight", "m.len")}
    arguments |= {"n_samples_per_prompt": more.pop("each", 1)} | more.pop("said", {})
    chosen = sampler("seqlen_balanced", arguments)
    least = more.pop("least", size)
    return ClaimRequest("t", ("n",), size, least, 0, chosen, View(("n",)), lease_s, **more)


def take(engine: Engine, rank: int, batch: int = 0, size: int = 2, partition: str = P, **more: Any) -> Claimed:
    claimed = claim_now(engine, partition, wanted(rank, batch, size, **more))
    assert isinstance(claimed, Claimed), claimed
    return claimed


def refused(engine: Engine, rank: int, batch: int = 0, size: int = 2, **more: Any) -> NotClaimed:
    found = claim_now(engine, P, wanted(rank, batch, size, **more))
    assert isinstance(found, NotClaimed), found
    return found


@pytest.mark.parametrize("lease_s", [None, 10.0])
def test_the_first_call_splits_for_all_and_each_rank_gets_its_share(lease_s: float | None) -> None:
    engine = ready([9, 1, 2, 8, 5, 5, 5, 5])
    first = take(engine, 0, lease_s=lease_s)
    assert counts_of(engine.partitions[P], "t").leased == (2 if lease_s is None else 4)
    second = take(engine, 1, lease_s=lease_s)
    assert sorted(rows_of(first) + rows_of(second)) == [0, 1, 2, 3]
    assert [sum([9, 1, 2, 8][row] for row in rows_of(one)) for one in (first, second)] == [10, 10]
    for rank, claimed in ((0, first), (1, second)):
        assert seen(take(engine, rank, lease_s=lease_s)) == seen(claimed)
    assert sorted(rows_of(take(engine, 1, 1, lease_s=lease_s)) + rows_of(take(engine, 0, 1, lease_s=lease_s))) == [
        4,
        5,
        6,
        7,
    ]


def test_a_global_batch_is_wanted_not_a_ranks_own() -> None:
    engine = ready([1, 2, 3])
    found = refused(engine, 0)
    assert (found.ready, found.wanted) == (3, 4)
    assert explain_claim(engine, P, wanted(0)).wanted == 4
    assert engine.partitions[P].tasks == {}
    assert len(rows_of(take(engine, 0, least=1))) == 1
    assert counts_of(engine.partitions[P], "t").leased == 2


def test_a_lease_starts_when_its_share_is_fetched_and_an_expired_one_goes_out_again_there() -> None:
    engine = ready([4, 3, 2, 1])
    first = take(engine, 0)
    at(engine, 9.0)
    second = take(engine, 1, lease_s=50.0)
    assert second.left_s == 50.0
    at(engine, 10.0)
    assert account(engine) == (0, 4, 0)
    assert refused(engine, 0, 1).ready == 0
    again = take(engine, 0)
    assert (rows_of(again), again.claim_id != first.claim_id) == (rows_of(first), True)
    assert seen(take(engine, 1)) == seen(second)
    settle(engine, again, accept=None)
    settle(engine, second, accept=None)
    assert account(engine) == (4, 0, 0)


def test_groups_stay_whole_in_a_share_and_settle_so() -> None:
    engine = ready([9, 9, 1, 1, 6, 6, 4, 4, 5, 5, 5, 5], 2)
    first, second = take(engine, 0, size=4, each=2), take(engine, 1, size=4, each=2)
    assert sorted([rows_of(first), rows_of(second)]) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    with pytest.raises(Invalid, match="group"):
        settle(engine, first, accept=rows_of(first)[:1])
    settle(engine, first, accept=rows_of(first)[:2], release=rows_of(first)[2:])
    assert rows_of(take(engine, 0, size=4, each=2)) == rows_of(first)[2:]


def test_what_is_left_of_a_group_whose_other_row_is_dead_settles_row_by_row() -> None:
    engine = ready([9, 9, 1, 1, 6, 6, 4, 4], 2)
    put_partition(engine, P, None, None, 2, {})
    worn = ClaimRequest("t", ("n",), 1, 1, 0, sampler("sequential", {}), View(("n",)), 10.0)
    settle(engine, claim_now(engine, P, worn), release=[0], counts=True)  # type: ignore[arg-type]
    claims = [take(engine, rank, size=4, each=2) for rank in (0, 1)]
    rank = next(rank for rank in (0, 1) if 0 in rows_of(claims[rank]))
    settle(engine, claims[rank], release=[0, 1, 2, 3], counts=True)
    again = take(engine, rank, size=4, each=2)
    assert rows_of(again) == [1, 2, 3]
    assert seen(take(engine, rank, size=4, each=2)) == seen(again)
    assert settle(engine, again, accept=[2], reject=[(1, "alone")]).open == 1
    at(engine, 10.0)
    assert account(engine) == (1, 4, 3)


def test_rows_without_a_number_wait_until_they_have_one() -> None:
    engine = ready([1, "long", None, True, 2, 3, 4])
    found = refused(engine, 0, size=3)
    assert [(b.reason, b.count, b.global_indexes) for b in found.blocking] == [("weight-missing", 3, (1, 2, 3))]
    assert sorted(rows_of(take(engine, 0)) + rows_of(take(engine, 1))) == [0, 4, 5, 6]
    assert refused(engine, 0, 1).ready == 3


def test_a_group_with_a_member_without_weight_is_passed_over() -> None:
    engine = ready([1, 1, 1, None, 3, 3, 2, 2, 4, 4], 2)
    assert sorted(rows_of(take(engine, 0, each=2)) + rows_of(take(engine, 1, each=2))) == [0, 1, 4, 5]
    assert {b.reason for b in refused(engine, 0, 7, size=4, each=2).blocking} >= {"weight-missing", "leased"}


def test_the_last_split_of_a_sealed_partition_takes_all_and_a_share_may_be_empty() -> None:
    engine = ready([5, 5, 7, 7], 2)
    more = {"size": 4, "ranks": 4, "each": 2}
    assert refused(engine, 3, **more).ready == 4
    seal_partition(engine, P)
    claims = [take(engine, rank, **more) for rank in range(4)]
    assert sorted(map(len, map(rows_of, claims))) == [0, 0, 2, 2]
    empty = next(claimed for claimed in claims if not rows_of(claimed))
    assert empty.lease is not None
    assert settle(engine, empty, accept=None).accepted == 0
    assert seen(take(engine, claims.index(empty), **more)) == seen(empty)
    assert empty.lease.number not in engine.leases.open
    for claimed in claims:
        settle(engine, claimed, accept=None)
    assert refused(engine, 0, 1, **more).done


def test_the_last_split_takes_whole_groups_where_rows_of_others_are_left() -> None:
    engine = ready([1, 1, 2, 2, 3], 2)
    seal_partition(engine, P)
    assert sorted(rows_of(take(engine, 0, each=2, size=4)) + rows_of(take(engine, 1, each=2, size=4))) == [0, 1, 2, 3]


def test_the_last_split_is_not_kept_waiting_by_rows_that_no_split_can_take() -> None:
    engine = ready([1, 1, None, 1, None, 1], 2)
    seal_partition(engine, P)
    assert [rows_of(take(engine, rank, each=2)) for rank in (0, 1)] == [[0, 1], []]


def test_rows_still_to_be_produced_keep_a_sealed_partition_from_its_last_split() -> None:
    engine = ready([1, 2, 3])
    late = add(engine, P, 1)
    seal_partition(engine, P)
    assert refused(engine, 0, size=4).ready == 3
    write(engine, P, late, ["n"])
    assert len(rows_of(take(engine, 0, size=4)) + rows_of(take(engine, 1, size=4))) == 3


def test_cleared_rows_end_their_share_alone() -> None:
    engine = ready([4, 3, 2, 1, 9, 9])
    first = take(engine, 0)
    other = [row for row in range(4) if row not in rows_of(first)]
    delete(engine, P, Selector([other[0]]))
    with pytest.raises(SampleCleared) as refused_:
        take(engine, 1)
    assert refused_.value.global_indexes == [other[0]]
    assert seen(take(engine, 0)) == seen(first)
    assert account(engine) == (0, 2, 0)
    check(engine)


@pytest.mark.parametrize(
    ("loc", "more"),
    [
        ("body.batch_size", {"size": 4}),
        ("body.ack", {"lease_s": None}),
        ("body.sampler.dp_size", {"ranks": 3}),
        ("body.sampler.weight", {"weight": "n"}),
        ("body.sampler.n_samples_per_prompt", {"each": 2}),
    ],
)
def test_other_terms_are_refused_for_every_rank(loc: str, more: dict[str, Any]) -> None:
    engine = ready([1, 2, 3, 4])
    take(engine, 0)
    before = dump(engine)
    for rank in (0, 1):
        with pytest.raises(Invalid) as refused_:
            take(engine, rank, **more)
        assert [where for where, _ in refused_.value.errors] == [loc]
    assert dump(engine) == before
    assert len(rows_of(take(engine, 1, weight=["m", "len"]))) == 2


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"rank": 2}, "below dp_size=2"),
        ({"size": 3, "each": 2}, "multiple"),
        ({"size": 65_536}, "65536"),
        ({"weight": "m..len"}, "weight"),
        ({"weight": []}, "weight"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises(Invalid, match=words):
        wanted(**({"rank": 0} | more))


def test_a_restart_remembers_shares_that_nobody_fetched() -> None:
    engine, book = ready([7, 1, 2, 6, 5, 5, 3, 4]), Book()
    first = take(engine, 0)
    settle(engine, first, release=rows_of(first))
    take(engine, 1, 1, lease_s=None)
    book.take(engine)
    replayed = book.replayed()
    assert dump(replayed.partitions) == dump(engine.partitions)
    assert rows_of(take(replayed, 0)) == rows_of(first)
    assert sorted(rows_of(take(replayed, 1)) + rows_of(first)) == [0, 1, 2, 3]
    assert len(rows_of(take(replayed, 0, 1, lease_s=None))) == 2
    assert account(replayed) == (4, 4, 0)


def test_reset_and_other_partitions() -> None:
    engine = ready([1, 2, 3, 4], partition="other", engine=ready([1, 2, 3, 4]))
    take(engine, 0)
    assert rows_of(take(engine, 0, partition="other"))[0] >= 4
    assert reset_consumption(engine, P, "t")[0] == 4
    assert account(engine) == (0, 0, 0)
    assert len(rows_of(take(engine, 0, size=1))) == 1


def test_it_is_the_rows_of_the_lowest_indexes_that_are_balanced() -> None:
    chance = np.random.default_rng(3)
    lengths = np.minimum(np.rint(chance.lognormal(6.5, 1.0, 600)), 16_384).astype(int).tolist()
    engine = ready(lengths)
    shares = [rows_of(take(engine, rank, size=64, ranks=8)) for rank in range(8)]
    assert sorted(row for share in shares for row in share) == list(range(512))
    sums = [sum(lengths[row] for row in share) for share in shares]
    assert max(sums) - min(sums) <= 5
    check(engine)


def test_the_account_adds_up_whatever_happens() -> None:
    chance = np.random.default_rng(5)
    engine, now = ready(chance.integers(1, 99, 80).tolist(), 2), 0.0
    put_partition(engine, P, None, None, 3, {})
    held: list[Claimed] = []
    for _ in range(500):
        what = chance.integers(0, 6)
        if what < 3:
            held += _try(engine, chance)
        elif what == 3 and held:
            _settle(engine, held.pop(int(chance.integers(0, len(held)))), bool(chance.integers(0, 2)))
        elif what == 4:
            now += float(chance.integers(0, 4))
            at(engine, now)
        elif chance.integers(0, 6) == 0:
            delete(engine, P, Selector([int(chance.integers(0, 80))]))
        check(engine)


def _try(engine: Engine, chance: np.random.Generator) -> list[Claimed]:
    one = wanted(int(chance.integers(0, 2)), int(chance.integers(0, 9)), 4, each=2)
    try:
        claimed = claim_now(engine, P, one)
    except SampleCleared:
        return []
    return [claimed] if isinstance(claimed, Claimed) else []


def _settle(engine: Engine, claimed: Claimed, is_accepted: bool) -> None:
    assert claimed.lease is not None
    rows = claimed.lease.open_rows().tolist()
    if rows and len(rows) == len(claimed.lease.indexes):
        words = ((), rows) if not is_accepted else (rows, ())
        ack(engine, claimed.claim_id, Ack(claimed.lease.token, words[0], words[1], ()))
    expire(engine, engine.clock())


def test_only_rows_that_pass_where_are_split_and_what_ended_comes_back_to_its_rank_alone() -> None:
    engine = ready([4, 3, 2, 1, 9, 8])
    light = where([Condition(path="m.len", op="<", value=9)], "body.where")
    first, second = take(engine, 0, where=light), take(engine, 1, where=light)
    assert sorted(rows_of(first) + rows_of(second)) == [0, 1, 2, 3]
    settle(engine, first, release=rows_of(first))
    found = refused(engine, 0, 1, where=light)
    assert (found.ready, [(b.reason, b.count) for b in found.blocking]) == (1, [("leased", 4), ("filtered", 1)])
    assert rows_of(take(engine, 0)) == rows_of(first)


BY_POSITION: dict[str, Any] = {"each": 2, "size": 4, "said": {"group_by": "position"}}


def test_consecutive_rows_stay_on_one_rank_and_their_sums_are_balanced() -> None:
    engine = ready([9, 0, 1, 1, 6, 3, 0, 5])
    shares = [rows_of(take(engine, rank, **BY_POSITION)) for rank in (0, 1)]
    assert sorted(shares) == [[0, 1, 2, 3], [4, 5, 6, 7]] or sorted(shares) == [[0, 1, 6, 7], [2, 3, 4, 5]]
    sums = [sum([9, 0, 1, 1, 6, 3, 0, 5][row] for row in share) for share in shares]
    assert abs(sums[0] - sums[1]) == 3
    with pytest.raises(Invalid, match=r"group_by: is group_id, and .* said position"):
        claim_now(engine, P, wanted(0, size=4, each=2))


def test_rows_without_a_number_weigh_the_default() -> None:
    engine = ready([None, 6, "long", 2])
    default = {"said": {"weight_default": 4}}
    shares = [rows_of(take(engine, rank, **default)) for rank in (0, 1)]
    assert sorted(shares) == [[0, 2], [1, 3]]
    assert seen(take(engine, 0, said={"weight_default": 4.0}))
    for other in (5, None):
        with pytest.raises(Invalid, match=r"weight_default: is (5|nothing), and .* said 4"):
            claim_now(engine, P, wanted(0, said={"weight_default": other}))


def test_what_an_older_journal_remembers_has_no_default_and_groups_by_id() -> None:
    engine = ready([1, 2, 3, 4])
    first = take(engine, 0)
    memory = engine.partitions[P].tasks["t"].memory
    assert memory is not None
    (kept,) = memory.allotments.values()
    kept.terms = ShareTerms(kept.terms.fields, kept.terms.batch_size, kept.terms.ack, b'[2,["m","len"],1]')
    assert seen(take(engine, 0)) == seen(first)
    with pytest.raises(Invalid, match=r"weight_default: is 1, and .* said nothing"):
        claim_now(engine, P, wanted(0, said={"weight_default": 1}))
