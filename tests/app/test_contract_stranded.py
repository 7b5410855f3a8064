"""Sealed partitions with rows left that a claim can never get: the claim is answered at once, with the reasons."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from .service import Api
from .test_waiting import client, parked, settled

Ending = Callable[[], Any]
PAIRS = {"sampler": {"name": "grpo_group", "n_samples_per_prompt": 2}}
WINDOWS = {"sampler": {"name": "grpo_group", "n_samples_per_prompt": 2, "group_by": "position"}}
HEAVY = {"sampler": {"name": "priority", "weight": "w"}}
BUDGET = {"sampler": {"name": "token_budget", "weight": "w", "budget": 9}}
SPLIT = {"sampler": {"name": "seqlen_balanced", "dp_rank": 0, "batch_index": 0, "dp_size": 2, "weight": "w"}}
SPLIT_PAIRS = {"sampler": {**SPLIT["sampler"], "n_samples_per_prompt": 2}}
PASS = {"where": [{"path": "w", "op": ">", "value": 1}]}


def answer(body: Any) -> tuple[Any, bool, int | None]:
    return body["claim"], body["done"], body.get("stranded")


def reasons(body: Any) -> dict[str, int]:
    return {line["reason"]: line["count"] for line in body["blocking"]}


@pytest.mark.parametrize(
    ("size", "more", "row", "reason"),
    [
        (2, PAIRS, {"group_ids": ["g", "g", "g"]}, "group-oversized"),
        (2, PAIRS, {"group_ids": ["g", "h", "i"]}, "group-incomplete"),
        (2, PAIRS, {"group_ids": [None, None, "h"]}, "group-incomplete"),
        (2, PAIRS, {}, "group-incomplete"),
        (1, HEAVY, {}, "weight-missing"),
        (1, BUDGET, {"custom_meta": [{}, {"w": "1"}, {"w": True}]}, "weight-missing"),
        (1, SPLIT, {}, "weight-missing"),
        (2, SPLIT_PAIRS, {"group_ids": ["g", "g", "h"]}, "weight-missing"),
        (1, PASS, {"custom_meta": [{"w": 1}, {"w": 0}, {}]}, "filtered"),
        (2, PASS | PAIRS, {"group_ids": ["g", "g", "h"], "custom_meta": [{"w": 2}, {"w": 1}, {}]}, "filtered"),
    ],
)
def test_what_no_claim_of_its_kind_can_get_ends_it_with_the_reason(
    api: Api, size: int, more: Any, row: Any, reason: str
) -> None:
    api.produce(["a", "b", "c"], "n", **row)
    assert answer(api.claim("n", size=size, **more).json()) == (None, False, None), "more may come"
    api.ok("POST", "seal")
    body = api.claim("n", size=size, wait_s=60, **more).json()
    assert answer(body) == (None, True, 3)
    assert reason in reasons(body)
    assert api.ok("GET", "tasks/t/consumption?counts_only=true")["done"] is False
    assert api.claim("n", size=3).json()["batch"]["size"] == 3, "another sampler gets them"


def test_a_window_with_a_cleared_row_and_one_of_two_groups_are_named_and_end_it(api: Api) -> None:
    rows = api.produce([f"k{i}" for i in range(7)], "n", group_ids=[None, None, "g", "h", "i", "i", None])
    indexes = rows["global_indexes"]
    api.ok("POST", "samples/delete", {"keys": ["k0"]})
    api.ok("POST", "seal")
    assert api.claim("n", size=4, **WINDOWS).json()["batch"]["keys"] == ["k4", "k5"]
    body = api.claim("n", size=2, wait_s=60, **WINDOWS).json()
    assert answer(body) == (None, True, 4)
    (line,) = [line for line in body["blocking"] if line["reason"] == "group-incomplete"]
    assert (line["count"], line["global_indexes"]) == (4, [indexes[1], indexes[2], indexes[3], indexes[6]])


def test_what_can_go_out_goes_first_however_many_others_are_left(api: Api) -> None:
    api.produce(list("abcdefgh"), "n", group_ids=["x", "x", "y", "z", "v", "w", "u", "t"])
    api.ok("POST", "seal")
    batch = api.claim("n", size=4, wait_s=60, **PAIRS).json()["batch"]
    assert batch["keys"] == ["a", "b"], "the last whole group, though more rows than asked for are left"
    assert answer(api.claim("n", size=4, wait_s=60, **PAIRS).json()) == (None, True, 6)


def test_what_may_come_back_or_still_be_produced_is_not_stranded(api: Api) -> None:
    held = api.produce(["a", "b", "c"], "n", custom_meta=[{"w": 1}, {}, {"w": 2}])["global_indexes"]
    api.insert("d")
    api.ok("POST", "seal")
    claim = api.claim("n", size=1, ack="explicit").json()["claim"]
    clear = api.ok("POST", "clears", {"keys": ["c"]})["clear_id"]
    assert answer(api.claim("n", **PASS).json()) == (None, False, None), "d may get a weight with its field"
    api.produce(["d"], "n")
    assert answer(api.claim("n", **PASS).json()) == (None, False, None), "a is leased and c is clearing"
    api.ok("POST", f"/v1/claims/{claim['claim_id']}/ack", {"token": claim["token"]})
    assert answer(api.claim("n", **PASS).json()) == (None, False, None), "c is clearing"
    api.ok("POST", f"/v1/clears/{clear}/abort")
    assert api.claim("n", size=9, **PASS).json()["batch"]["global_indexes"] == held[2:]
    clear = api.ok("POST", "clears", {"keys": ["c"]})["clear_id"]
    assert answer(api.claim("n", **PASS).json()) == (None, True, 2), "c is consumed, whatever becomes of its clear"
    api.ok("POST", "production/revoke", {"keys": ["d"], "fields": ["n"]})
    assert answer(api.claim("n", **PASS).json()) == (None, False, None), "d may be produced again"


def leased(api: Api) -> Ending:
    """A row that passes is held by somebody, who will ack it."""
    api.produce(["d"], "n", custom_meta=[{"w": 2}])
    held = api.claim("n", ack="explicit", **PASS).json()["claim"]
    api.ok("POST", "seal")
    return lambda: api.ok("POST", f"/v1/claims/{held['claim_id']}/ack", {"token": held["token"]})


def not_produced(api: Api) -> Ending:
    """A row is still to be produced, and will not pass."""
    api.insert("d")
    api.ok("POST", "seal")
    return lambda: api.produce(["d"], "n", custom_meta=[{"w": "none"}])


def deleted(api: Api) -> Ending:
    """A row that was never produced will be deleted."""
    api.insert("d")
    api.ok("POST", "seal")
    return lambda: api.ok("POST", "samples/delete", {"keys": ["d"]})


def clearing(api: Api) -> Ending:
    """A row that passes is clearing, and its clear will be committed."""
    api.produce(["d"], "n", custom_meta=[{"w": 2}])
    clear = api.ok("POST", "clears", {"keys": ["d"]})["clear_id"]
    api.ok("POST", "seal")
    return lambda: api.ok("POST", f"/v1/clears/{clear}/commit")


def still_open(api: Api) -> Ending:
    """The partition will be sealed."""
    return lambda: api.ok("POST", "seal")


@pytest.mark.asyncio
@pytest.mark.parametrize("prepared", [leased, not_produced, deleted, clearing, still_open])
@pytest.mark.parametrize("more", [PASS, HEAVY], ids=["where", "weight"])
async def test_calls_that_wait_are_told_once_nothing_is_left_for_them(
    api: Api, prepared: Callable[[Api], Ending], more: Any
) -> None:
    api.produce(["a", "b"], "n")
    end = prepared(api)
    async with client(api.url) as http:
        claim = await parked(http, api.path, **more)
        await settled(http, api.path, claim)
        end()
        body = (await asyncio.wait_for(claim, 30)).json()
    assert answer(body) == (None, True, 3 if prepared is not_produced else 2)
