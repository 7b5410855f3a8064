"""`production/revoke` as the contract has it, over HTTP: only readiness falls."""

import asyncio

import pytest

from .service import Api, Json, refused
from .test_waiting import client, parked, settled


def revoke(api: Api, keys: list[str], *fields: str) -> Json:
    return api.ok("POST", "production/revoke", {"keys": keys, "fields": list(fields)})


def status(api: Api, field: str = "n") -> list[int]:
    found: list[int] = api.ok("GET", f"batch-meta?fields={field}")["production_status"]
    return found


def test_only_readiness_falls(filled: Api) -> None:
    before = filled.ok("GET", "batch-meta?expand=true&include=field_schema,backend_meta,custom_meta,group_ids")
    revision = filled.ok("GET", "")["revision"]
    told = revoke(filled, ["a", "b"], "ids")
    assert told == {"partition_id": filled.name, "revision": revision + 1, "revoked": 2}
    after = filled.ok("GET", "batch-meta?expand=true&include=field_schema,backend_meta,custom_meta,group_ids")
    assert (after["production_status"], after["is_ready"], after["revision"]) == ([0, 0], False, revision + 1)
    assert {**before, "production_status": 0, "is_ready": 0, "revision": 0} == {
        **after,
        "production_status": 0,
        "is_ready": 0,
        "revision": 0,
    }
    assert filled.ok("GET", "")["fields"]["ids"]["produced"] == 0
    assert filled.ok("GET", "tasks/t/consumption")["consumed"] == 1


def test_again_it_is_no_change(api: Api) -> None:
    api.produce(["a", "b"], "n")
    assert revoke(api, ["a", "nobody"], "n")["revoked"] == 1
    before = api.dump()
    assert revoke(api, ["a", "nobody"], "n")["revoked"] == 0
    gone = api.ok("POST", "production/revoke", {"global_indexes": [2**63 - 1], "fields": ["n"]})
    assert gone["revoked"] == 0
    assert api.dump() == before


@pytest.mark.asyncio
async def test_no_claim_gets_the_sample_until_the_field_is_written_again(api: Api) -> None:
    api.produce(["a"], "n")
    revoke(api, ["a"], "n")
    assert api.claim("n").json()["blocking"][0]["reason"] == "not-produced"
    async with client(api.url) as http:
        claim = await parked(http, api.path)
        await settled(http, api.path, claim)
        api.produce(["a"], "n")
        reply = await asyncio.wait_for(claim, 30)
    assert reply.json()["batch"]["keys"] == ["a"]


def test_a_lease_stays(api: Api) -> None:
    api.produce(["a", "b"], "n")
    held = api.claim("n", size=2, ack="explicit").json()
    revoke(api, ["a", "b"], "n")
    rows = held["batch"]["global_indexes"]
    said = {"token": held["claim"]["token"], "accept": rows[:1], "release": rows[1:]}
    assert api.ok("POST", f"/v1/claims/{held['claim']['claim_id']}/ack", said)["accepted"] == 1
    assert api.claim("n").json()["claim"] is None
    api.produce(["a", "b"], "n")
    assert api.claim("n").json()["batch"]["keys"] == ["b"]


def test_what_is_unknown_is_refused(filled: Api) -> None:
    body = {"keys": ["a"], "fields": ["ids", "nobody"]}
    before = filled.dump()
    assert refused(filled.send("POST", "production/revoke", body), 404, "field-not-found")["fields"] == ["nobody"]
    assert filled.dump() == before
    other = f"{filled.path}-never/production/revoke"
    refused(filled.send("POST", other, body), 404, "partition-not-found")
    filled.ok("DELETE", "")
    refused(filled.send("POST", "production/revoke", body), 410, "partition-cleared")
