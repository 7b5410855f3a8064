"""Leases as the contract has them, over HTTP. What depends on time is in tests/core/test_leases.py."""

import asyncio
from typing import Any

import pytest

from .service import Api, refused
from .test_waiting import client, parked, settled


def lease(api: Api, size: int = 2, **more: Any) -> Any:
    """The claim of a lease that was handed out."""
    body = api.claim("n", size=size, ack="explicit", **more).json()
    assert body["claim"] is not None, body
    return body["claim"] | {"rows": body["batch"]["global_indexes"]}


def ack(api: Api, held: Any, **said: Any) -> Any:
    return api.send("POST", f"/v1/claims/{held['claim_id']}/ack", {"token": held["token"], **said})


def counts(api: Api, task: str = "t") -> Any:
    body = api.ok("GET", f"tasks/{task}/consumption?counts_only=true")
    return [body[name] for name in ("consumed", "leased", "dead", "total")]


def test_leased_rows_go_to_nobody_else_and_accepted_ones_never_come_again(api: Api) -> None:
    api.produce(["a", "b", "c"], "n")
    held = lease(api, worker="w")
    assert (held["ack"], held["worker"], held["attempt"], held["expires_in_s"]) == ("explicit", "w", 1, 600)
    assert held["attempts"] == {"const": 1}
    assert counts(api) == [0, 2, 0, 3]
    assert api.claim("n", size=2).json()["claim"] is None
    assert ack(api, held).json() | {"revision": 0} == {
        "partition_id": api.name,
        "revision": 0,
        "accepted": 2,
        "released": 0,
        "rejected": 0,
        "open": 0,
    }
    assert counts(api) == [2, 0, 0, 3]
    assert api.ok("GET", "tasks/t/consumption")["consumption_status"] == [1, 1, 0]


def test_released_rows_come_again_and_rejected_ones_are_dead(api: Api) -> None:
    api.produce(["a", "b", "c"], "n")
    held = lease(api, 3)
    a, b, c = held["rows"]
    said = {"accept": [a], "release": [b], "reject": [{"global_index": c, "reason": "empty"}]}
    assert ack(api, held, **said).json()["open"] == 0
    assert counts(api) == [1, 0, 1, 3]
    assert api.ok("GET", "tasks/t/dead")["dead"] == [{"global_index": c, "key": "c", "reason": "empty", "attempts": 1}]
    again = lease(api, 1)
    assert (again["rows"], again["attempt"], again["claim_id"] != held["claim_id"]) == ([b], 1, True)
    assert api.ok("POST", "tasks/t/consumption/reset")["reset"] == 3
    assert lease(api, 3)["attempt"] == 1


def test_an_ack_said_again_has_the_same_answer_and_changes_nothing(api: Api) -> None:
    api.produce(["a", "b"], "n")
    held = lease(api)
    first = ack(api, held, accept=held["rows"][:1]).json()
    assert ack(api, held, accept=held["rows"][:1]).json() == first
    done = ack(api, held, accept="all").json()
    before = api.dump()
    assert ack(api, held).status_code == 200
    assert ack(api, held, release=held["rows"][1:]).json()["code"] == "lease-lost"
    assert (done["accepted"], done["open"], api.dump()) == (1, 0, before)


def test_of_a_lost_lease_every_row_named_is_told_and_accepted_ones_stay(api: Api) -> None:
    api.produce([f"k{i}" for i in range(30)], "n")
    held = lease(api, 30)
    ack(api, held, accept=held["rows"][:1])
    api.ok("POST", "samples/delete", {"global_indexes": held["rows"][1:]})
    problem = refused(ack(api, held, accept=held["rows"]), 409, "lease-lost")
    assert problem["global_indexes"] == held["rows"][1:]
    assert counts(api) == [1, 0, 0, 1]


@pytest.mark.parametrize("end", ["reset", "delete", "partition"])
def test_what_ends_a_lease(api: Api, end: str) -> None:
    api.produce(["a", "b"], "n")
    held = lease(api)
    if end == "reset":
        api.ok("POST", "tasks/t/consumption/reset")
    elif end == "delete":
        api.ok("POST", "samples/delete", {"keys": ["a", "b"]})
    else:
        api.ok("DELETE", "")
    refused(ack(api, held), 409, "lease-lost")
    extend = {"token": held["token"], "lease_s": 5}
    refused(api.send("POST", f"/v1/claims/{held['claim_id']}/extend", extend), 409, "lease-lost")
    assert api.ok("GET", f"/v1/claims/{held['claim_id']}")["open"] == 0


def test_a_lease_is_extended_from_now(api: Api) -> None:
    api.produce(["a"], "n")
    held = lease(api, 1, lease_s=5)
    longer = api.ok("POST", f"/v1/claims/{held['claim_id']}/extend", {"token": held["token"], "lease_s": 500})
    assert longer["open"] == 1
    assert 490 < longer["expires_in_s"] <= 500


def test_who_holds_what_and_a_dead_worker_lets_go(api: Api) -> None:
    worker = f"w-{api.name}"
    api.produce(["a", "b", "c"], "n")
    first, second = lease(api, 1, worker=worker), lease(api, 1, worker=worker)
    other = lease(api, 1, worker=f"{worker}-other")
    listed = api.ok("GET", f"/v1/claims?partition_id={api.name}")["claims"]
    assert [claim["claim_id"] for claim in listed] == [held["claim_id"] for held in (first, second, other)]
    assert not any("token" in claim for claim in listed)
    assert [c["claim_id"] for c in api.ok("GET", f"/v1/claims?worker={worker}&task=t")["claims"]] == [
        first["claim_id"],
        second["claim_id"],
    ]
    gone = api.ok("POST", f"/v1/workers/{worker}/release")
    assert gone == {"released": 2, "claims": [first["claim_id"], second["claim_id"]]}
    refused(ack(api, first), 409, "lease-lost")
    assert ack(api, other).status_code == 200
    assert api.ok("POST", f"/v1/workers/{worker}/release") == {"released": 0, "claims": []}
    assert lease(api, 2)["attempts"] == {"const": 2}


def test_rows_that_were_out_too_often_are_dead(api: Api) -> None:
    api.ok("PUT", "", {"max_attempts": 2})
    api.produce(["a"], "n")
    for _ in range(2):
        held = lease(api, 1)
        ack(api, held, release=held["rows"], counts=True)
    assert api.claim("n").json()["blocking"][0]["reason"] == "dead"
    assert api.ok("GET", "tasks/t/dead")["dead"][0]["reason"] == "max-attempts"
    assert api.ok("GET", "")["tasks"] == {"t": {"consumed": 0, "leased": 0, "dead": 1}}


def test_a_release_takes_its_attempt_back_unless_it_counts(api: Api) -> None:
    api.ok("PUT", "", {"max_attempts": 2})
    api.produce(["a"], "n")
    for _ in range(5):
        held = lease(api, 1)
        assert (held["attempt"], held["attempts"]) == (1, [1])
        assert ack(api, held, release=held["rows"]).json()["released"] == 1
        assert ack(api, held, release=held["rows"]).json()["released"] == 1, "said again"
    counted = lease(api, 1)
    ack(api, counted, release=counted["rows"], counts=True)
    assert lease(api, 1)["attempt"] == 2
    assert counts(api) == [0, 1, 0, 1]


@pytest.mark.parametrize("said", [{}, {"accept": "all"}])
def test_all_is_said_again_for_a_lease_of_which_no_row_was_lost(api: Api, said: Any) -> None:
    api.produce(["a", "b", "c", "d"], "n")
    held = lease(api, 4)
    a, b, c, d = held["rows"]
    ack(api, held, accept=[a], release=[b])
    api.ok("POST", "samples/delete", {"global_indexes": [c, d]})
    before = api.dump()
    assert refused(ack(api, held, **said), 409, "lease-lost")["global_indexes"] == [c, d]
    extended = api.send("POST", f"/v1/claims/{held['claim_id']}/extend", {"token": held["token"], "lease_s": 5})
    assert refused(extended, 409, "lease-lost")["global_indexes"] == [c, d]
    assert ack(api, held, accept=[a], release=[b]).json()["accepted"] == 1
    assert api.dump() == before


def test_groups_settle_whole(api: Api) -> None:
    api.produce(["a", "b", "c", "d"], "n", group_ids=["g", "h", "g", "h"])
    held = lease(api, 4, sampler={"name": "grpo_group", "n_samples_per_prompt": 2})
    before = api.dump()
    refused(ack(api, held, accept=held["rows"][:1]), 422, "invalid-request", "group")
    assert api.dump() == before
    assert ack(api, held, accept=held["rows"][:2], release=held["rows"][2:]).json()["accepted"] == 2


@pytest.mark.asyncio
async def test_a_waiting_claim_gets_what_is_released(api: Api) -> None:
    api.produce(["a"], "n")
    held = lease(api, 1)
    async with client(api.url) as http:
        claim = await parked(http, api.path)
        await settled(http, api.path, claim)
        ack(api, held, release=held["rows"])
        reply = await asyncio.wait_for(claim, 30)
    assert reply.json()["batch"]["keys"] == ["a"]


@pytest.mark.asyncio
async def test_a_waiting_claim_gets_what_a_lease_leaves_when_its_time_is_up(api: Api) -> None:
    api.produce(["a"], "n")
    held = lease(api, 1, lease_s=0.2)
    async with client(api.url) as http:
        reply = await (await parked(http, api.path))
    assert reply.json()["batch"]["keys"] == ["a"]
    refused(ack(api, held), 409, "lease-lost")


BAD = [
    ({"accept": [0, 0]}, 422, "invalid-request"),
    ({"accept": [2**62]}, 422, "invalid-request"),
    ({"accept": "none"}, 422, "invalid-request"),
    ({"reject": [{"global_index": 0}]}, 422, "invalid-request"),
    ({"token": "another"}, 409, "lease-lost"),
]


@pytest.mark.parametrize(("said", "status", "code"), BAD)
def test_an_ack_that_makes_no_sense_changes_nothing(api: Api, said: Any, status: int, code: str) -> None:
    api.produce(["a"], "n")
    held = lease(api, 1)
    before = api.dump()
    refused(ack(api, held, **said), status, code)
    assert api.dump() == before
    assert ack(api, held).status_code == 200


def test_a_claim_that_never_was_is_not_found(api: Api) -> None:
    for name in ("c0", "cffff", "x1", "c01", "c-1"):
        refused(api.send("GET", f"/v1/claims/{name}"), 404, "claim-not-found")
    api.produce(["a"], "n")
    taken = api.claim("n").json()["claim"]["claim_id"]
    refused(api.send("POST", f"/v1/claims/{taken}/ack", {"token": "t"}), 404, "claim-not-found")


def test_a_length_without_a_lease_is_refused(api: Api) -> None:
    refused(api.claim("n", lease_s=5), 422, "invalid-request", "explicit")
    refused(api.claim("n", ack="explicit", lease_s=0), 422, "invalid-request")
    refused(api.claim("n", ack="explicit", lease_s=86_401), 422, "invalid-request")
