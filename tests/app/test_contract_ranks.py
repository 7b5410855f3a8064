"""`rank_aware` and `seqlen_balanced` over HTTP: replays, splits, waits, keys. What depends on time is in tests/core."""

import asyncio
from typing import Any

import pytest

from tests.conftest import ServerProcess

from .service import Api, refused
from .test_contract_leases import ack, counts
from .test_waiting import client, parked, settled

Json = Any
KEYS = [f"k{i}" for i in range(8)]
LENGTHS = [{"len": length} for length in (9, 1, 2, 8, 5, 5, 5, 5)]


def rank(number: int, batch: int = 0) -> Json:
    return {"name": "rank_aware", "dp_rank": number, "batch_index": batch}


def share(number: int, batch: int = 0, ranks: int = 2, **more: Json) -> Json:
    named = {"name": "seqlen_balanced", "dp_rank": number, "batch_index": batch}
    return named | {"dp_size": ranks, "weight": "len"} | more


def take(api: Api, sampler: Json, size: int = 2, **more: Json) -> Json:
    """The claim, with its rows."""
    reply = api.claim("n", size=size, sampler=sampler, **more)
    assert reply.status_code == 201, reply.text
    body = reply.json()
    return body["claim"] | {"rows": body["batch"]["global_indexes"]}


@pytest.mark.parametrize("how", ["on_dispatch", "explicit"])
def test_rank_0_two_batches_ahead_of_rank_1_no_row_twice_replays_identical(api: Api, how: str) -> None:
    api.produce([f"k{i}" for i in range(12)], "n")
    ahead = [take(api, rank(0, batch), ack=how) for batch in range(3)]
    behind = [take(api, rank(1, batch), ack=how) for batch in range(3)]
    assert len({row for claim in (*ahead, *behind) for row in claim["rows"]}) == 12
    before = api.dump()
    for number, claims in enumerate((ahead, behind)):
        for batch, first in enumerate(claims):
            again = take(api, rank(number, batch), ack=how)
            assert again | {"expires_in_s": 0} == first | {"expires_in_s": 0}
            assert ("token" in again) == (how == "explicit")
    assert api.dump() == before


def test_a_replay_has_the_lease_of_the_first_caller(api: Api) -> None:
    api.produce(KEYS, "n")
    first = take(api, rank(0), ack="explicit", lease_s=50, worker="w")
    again = take(api, rank(0), ack="explicit", lease_s=500, worker="other")
    assert 0 < again["expires_in_s"] <= 50
    assert (again["worker"], again["attempt"], again["token"]) == ("w", 1, first["token"])


def test_released_rows_go_out_again_only_there(api: Api) -> None:
    api.produce(KEYS[:3], "n")
    first = take(api, rank(0), ack="explicit")
    ack(api, first, release=first["rows"])
    assert counts(api) == [0, 2, 0, 3]
    assert api.claim("n", size=2).json()["claim"] is None
    again = take(api, rank(0), ack="explicit")
    assert (again["rows"], again["attempts"]) == (first["rows"], {"const": 1})
    assert {first["claim_id"], first["token"]}.isdisjoint({again["claim_id"], again["token"]})
    refused(ack(api, first), 409, "lease-lost")
    assert ack(api, again).json()["accepted"] == 2
    assert take(api, rank(0), ack="explicit")["claim_id"] == again["claim_id"]


def test_rows_cleared_since_are_410_and_a_clear_hands_no_others_to_its_key(api: Api) -> None:
    api.produce(KEYS, "n")
    first = take(api, rank(0))
    api.ok("POST", "samples/delete", {"global_indexes": first["rows"]})
    before = api.dump()
    body = {"fields": ["n"], "batch_size": 2, "sampler": rank(0)}
    for path in ("tasks/t/claims", "tasks/t/explain"):
        problem = refused(api.send("POST", path, body), 410, "sample-cleared")
        assert problem["global_indexes"] == first["rows"]
    assert api.dump() == before
    api.ok("POST", "tasks/t/consumption/reset")
    assert take(api, rank(0))["rows"] == [row + 2 for row in first["rows"]]


def test_same_arguments_in_two_partitions_never_mix(api: Api) -> None:
    other = Api(api.url)
    with other.http:
        for one in (api, other):
            one.produce(KEYS, "n", custom_meta=LENGTHS)
        for sampler in (rank(0), share(0)):
            here, there = take(api, sampler), take(other, sampler)
            assert not set(here["rows"]) & set(there["rows"])
            assert take(api, sampler) == here


@pytest.mark.parametrize(
    ("loc", "members"),
    [
        ("body.fields", {"fields": ["n", "m"]}),
        ("body.batch_size", {"batch_size": 1}),
        ("body.ack", {"ack": "explicit"}),
        ("body.sampler.weight", {"sampler": share(1, weight="other")}),
        ("body.sampler.dp_size", {"sampler": share(1, ranks=4)}),
        ("body.sampler.n_samples_per_prompt", {"sampler": share(1, n_samples_per_prompt=2)}),
    ],
)
def test_other_words_under_the_same_key_are_422(api: Api, loc: str, members: Json) -> None:
    api.produce(KEYS, "n", "m", custom_meta=LENGTHS)
    take(api, share(0))
    before = api.dump()
    body = {"fields": ["n"], "batch_size": 2, "sampler": share(1)} | members
    problem = refused(api.send("POST", "tasks/t/claims", body), 422, "invalid-request", "batch_index")
    assert [error["loc"] for error in problem["errors"]] == [loc]
    assert api.dump() == before


BAD: list[tuple[Json, str]] = [
    ({"name": "rank_aware", "dp_rank": 0}, "batch_index"),
    (rank(-1), "dp_rank"),
    (rank(0, 2**63), "batch_index"),
    ({**rank(0), "dp_size": 2}, "dp_size"),
    ({"name": "seqlen_balanced", "dp_rank": 0, "batch_index": 0, "dp_size": 2}, "weight"),
    (share(2), "dp_rank"),
    (share(0, ranks=0), "dp_size"),
    (share(0, ranks=65_536), "dp_size=65536"),
    (share(0, n_samples_per_prompt=3), "multiple"),
    (share(0, weight=""), "weight"),
    (share(0, weight=[]), "weight"),
    (share(0, weight=7), "weight"),
    (share(0, group_by="key"), "group_by"),
    ({**rank(0), "n_samples_per_prompt": 3}, "multiple"),
    ({**rank(0), "weight_default": 1}, "weight_default"),
    (share(0, weight_default="1"), "weight_default"),
    (share(0, weight_default=-(2**63) - 1), "weight_default"),
]


@pytest.mark.parametrize(("sampler", "word"), BAD)
def test_arguments_that_make_no_sense_are_422(filled: Api, sampler: Json, word: str) -> None:
    before = filled.dump()
    problem = refused(filled.claim("ids", size=2, sampler=sampler), 422, "invalid-request", word)
    assert problem["errors"][0]["loc"].startswith("body.")
    assert filled.dump() == before


def test_a_split_serves_every_rank_and_counts_what_is_not_fetched(api: Api) -> None:
    written = api.produce(KEYS, "n", custom_meta=LENGTHS)["global_indexes"]
    first = take(api, share(0), ack="explicit")
    assert counts(api) == [0, 4, 0, 8]
    assert api.ok("GET", "")["tasks"] == {"t": {"consumed": 0, "leased": 4, "dead": 0}}
    explained = api.ok("POST", "tasks/t/explain", {"fields": ["n"], "batch_size": 2, "sampler": share(0, 1)})
    assert (explained["ready"], explained["wanted"], explained["leased"]) == (4, 4, 4)
    assert [(b["reason"], b["count"]) for b in explained["blocking"]] == [("leased", 4)]
    second = take(api, share(1), ack="explicit")
    assert sorted([*first["rows"], *second["rows"]]) == written[:4]
    assert [sum(LENGTHS[written.index(row)]["len"] for row in one["rows"]) for one in (first, second)] == [10, 10]


def test_an_empty_share_is_a_claim_that_can_be_acked(api: Api) -> None:
    api.produce(KEYS[:1], "n", custom_meta=LENGTHS[:1])
    api.ok("POST", "seal")
    claims = [take(api, share(number), 1, ack="explicit") for number in range(2)]
    assert sorted(len(claim["rows"]) for claim in claims) == [0, 1]
    empty = min(claims, key=lambda claim: len(claim["rows"]))
    assert (empty["attempt"], empty["attempts"]) == (0, [])
    assert ack(api, empty).json() | {"revision": 0} == {
        "partition_id": api.name,
        "revision": 0,
        "accepted": 0,
        "released": 0,
        "rejected": 0,
        "open": 0,
    }
    extend = {"token": empty["token"], "lease_s": 5}
    assert api.ok("POST", f"/v1/claims/{empty['claim_id']}/extend", extend)["open"] == 0
    for claim in claims:
        ack(api, claim)
    assert api.claim("n", sampler=share(0, 1), wait_s=60).json()["done"]


@pytest.mark.asyncio
async def test_ranks_that_wait_are_served_by_one_write(api: Api) -> None:
    api.produce(KEYS[:3], "n", custom_meta=LENGTHS[:3])
    async with client(api.url) as http:
        claims = [await parked(http, api.path, size=2, sampler=share(number % 2)) for number in range(4)]
        await settled(http, api.path, *claims)
        api.produce(KEYS[3:4], "n", custom_meta=LENGTHS[3:4])
        replies = [reply.json() for reply in await asyncio.wait_for(asyncio.gather(*claims), 30)]
    ids = [reply["claim"]["claim_id"] for reply in replies]
    assert (ids[0], ids[1]) == (ids[2], ids[3])
    assert len({row for reply in replies for row in reply["batch"]["global_indexes"]}) == 4


@pytest.mark.asyncio
async def test_a_rank_that_waits_is_told_of_other_terms_and_of_what_was_cleared(api: Api) -> None:
    async with client(api.url) as http:
        other = await parked(http, api.path, size=2, sampler=rank(0))
        await settled(http, api.path, other)
        api.produce(KEYS[:1], "n")
        assert take(api, rank(0), 1)["rows"]
        refused(await asyncio.wait_for(other, 30), 422, "invalid-request", "batch_size")
        waiting = await parked(http, api.path, size=1, sampler=rank(1), ack="explicit")
        await settled(http, api.path, waiting)
        api.produce(KEYS[1:2], "n")
        held = (await asyncio.wait_for(waiting, 30)).json()
        assert held["batch"]["size"] == 1
        api.ok("POST", "samples/delete", {"keys": KEYS[1:2]})
        refused(api.claim("n", sampler=rank(1), ack="explicit", wait_s=60), 410, "sample-cleared")


def test_sent_again_with_its_key_a_replay_is_the_same_byte_for_byte(api: Api) -> None:
    api.produce(KEYS, "n")
    take(api, rank(0))
    body = {"fields": ["n"], "batch_size": 2, "sampler": rank(0)}
    first, again = (
        api.send("POST", "tasks/t/claims", body, headers={"Idempotency-Key": f"{api.name}-one"}) for _ in range(2)
    )
    assert first.content == again.content
    assert again.headers["Idempotency-Replayed"] == "true"


def test_after_a_restart_the_same_claim_is_told_again(tmp_path: Any) -> None:
    server = ServerProcess("--journal", f"file://{tmp_path}/journal")
    try:
        api = Api(server.url)
        with api.http:
            api.produce(KEYS, "n", custom_meta=LENGTHS)
            first = [take(api, rank(0), ack="explicit"), take(api, share(1), ack="explicit")]
            released = take(api, rank(3), ack="explicit")
            ack(api, released, release=released["rows"])
    finally:
        assert server.stop() == 0
    server = ServerProcess("--journal", f"file://{tmp_path}/journal")
    try:
        again = Api(server.url)
        with again.http:
            again.path = api.path
            told = [take(again, rank(0), ack="explicit"), take(again, share(1), ack="explicit")]
            assert [one | {"expires_in_s": 0} for one in told] == [one | {"expires_in_s": 0} for one in first]
            assert take(again, rank(3), ack="explicit")["rows"] == released["rows"]
            assert not set(take(again, share(0), ack="explicit")["rows"]) & set(first[1]["rows"])
    finally:
        assert server.stop() == 0


def test_a_changed_argument_is_named_with_both_values(api: Api) -> None:
    api.produce(KEYS, "n", "m", custom_meta=LENGTHS)
    take(api, share(0))
    body = {"fields": ["n"], "batch_size": 2, "sampler": share(1, ranks=4)}
    refused(api.send("POST", "tasks/t/claims", body), 422, "invalid-request", "body.sampler.dp_size: is 4", "said 2")
    body = {"fields": ["n"], "batch_size": 3, "sampler": share(1)}
    refused(api.send("POST", "tasks/t/claims", body), 422, "invalid-request", "body.batch_size: is 3", "said 2")
    body = {"fields": ["n"], "batch_size": 2, "sampler": share(1, weight="other")}
    refused(api.send("POST", "tasks/t/claims", body), 422, "invalid-request", "body.sampler.weight: is other", "said ")


def test_a_rank_gets_whole_groups_and_consecutive_rows_may_make_them(api: Api) -> None:
    rows = api.produce(KEYS, "n", group_ids=["a", "b", "a", "b", "c", "c", "d", "d"])["global_indexes"]
    by_id, windows = {"n_samples_per_prompt": 2}, {"n_samples_per_prompt": 2, "group_by": "position"}
    for _ in range(2):
        assert take(api, rank(0) | by_id, size=4)["rows"] == [rows[at] for at in (0, 2, 1, 3)]
    problem = refused(api.claim("n", size=4, sampler=rank(0) | windows), 422, "invalid-request")
    assert problem["errors"][0]["loc"] == "body.sampler.group_by"
    held = take(api, rank(1) | windows, ack="explicit")
    assert held["rows"] == rows[4:6]
    refused(ack(api, held, accept=rows[4:5]), 422, "invalid-request")
    assert ack(api, held, accept=rows[4:6]).json()["accepted"] == 2


def test_consecutive_rows_stay_on_one_rank_of_a_balanced_split(api: Api) -> None:
    metas = [{} if length is None else {"len": length} for length in (9, 1, None, 0, 5, 3, 2, 2)]
    rows = api.produce(KEYS, "n", custom_meta=metas)["global_indexes"]
    windows = {"n_samples_per_prompt": 2, "group_by": "position", "weight_default": 2}
    shares = [take(api, share(number, **windows), size=4)["rows"] for number in (0, 1)]
    assert sorted(shares) == [rows[:4], rows[4:]]
