"""`token_budget`, `priority`, `random` and `lifo` as the contract has them, over HTTP."""

from typing import Any

from .service import Api

BUDGET = {"name": "token_budget", "weight": "stat.len", "budget": 100}


def weighed(api: Api, *lengths: Any) -> None:
    """Ready rows named after their place, with these lengths."""
    metas = [{} if length is None else {"stat": {"len": length}} for length in lengths]
    api.produce([f"k{i}" for i in range(len(lengths))], "n", custom_meta=metas)


def taken(api: Api, size: int, sampler: dict[str, Any], **more: Any) -> list[str] | None:
    reply = api.claim("n", size=size, sampler=sampler, **more).json()
    return None if reply["claim"] is None else reply["batch"]["keys"]


def test_token_budget_takes_the_lowest_while_they_fit(api: Api) -> None:
    weighed(api, 40, 50, None, 10, 1, 500, 60, 70)
    assert taken(api, 9, BUDGET) == ["k0", "k1", "k3"]
    assert taken(api, 9, BUDGET) == ["k4"]
    assert taken(api, 9, BUDGET) == ["k5"]
    assert taken(api, 1, BUDGET) == ["k6"]
    assert taken(api, 9, BUDGET) == ["k7"]
    reply = api.claim("n", size=9, sampler=BUDGET).json()
    (missing,) = [line for line in reply["blocking"] if line["reason"] == "weight-missing"]
    assert (missing["count"], len(missing["global_indexes"]), reply["ready"]) == (1, 1, 1)


def test_token_budget_waits_for_the_budget_and_then_takes_what_there_is(api: Api) -> None:
    weighed(api, 40)
    assert taken(api, 9, BUDGET, wait_s=0.05, min_batch_size=2) is None
    assert taken(api, 9, BUDGET, wait_s=0.05) == ["k0"]
    api.produce(["x", "y"], "n", custom_meta=[{"stat": {"len": 60}}, {"stat": {"len": 40}}])
    assert taken(api, 9, BUDGET, wait_s=30) == ["x", "y"]


def test_priority_takes_the_heaviest_and_a_new_weight_counts(api: Api) -> None:
    weighed(api, 1, 5, None, 5, -2)
    heavy = {"name": "priority", "weight": ["stat", "len"]}
    assert taken(api, 5, heavy) is None
    assert taken(api, 2, heavy) == ["k1", "k3"]
    api.ok("PATCH", "custom-meta", {"keys": ["k4", "k2"], "custom_meta": {"const": {"stat": {"len": 3}}}})
    assert taken(api, 3, heavy) == ["k2", "k4", "k0"]


def test_priority_tells_integers_apart_that_no_float_does(api: Api) -> None:
    weighed(api, 2**53, 2**53 + 1, 2**64 - 2, 2**64 - 1)
    heavy = {"name": "priority", "weight": "stat.len"}
    assert taken(api, 1, heavy) == ["k3"]
    weighed(api, -(2**63) + 1, -(2**63) + 2, 5, 2**53 + 3, 2.0**53)
    api.produce(["x"], "n", custom_meta=[{"stat": {"len": 2**53 + 2}}])
    assert [taken(api, 1, heavy) for _ in range(5)] == [["x"], ["k4"], ["k2"], ["k1"], ["k0"]]


def test_random_is_the_same_for_the_same_seed_and_takes_each_row_once(api: Api) -> None:
    weighed(api, *range(64))
    orders = []
    for task, seed in (("a", 1), ("b", 1), ("c", 2), ("d", 0), ("e", None)):
        sampler = {"name": "random"} | ({} if seed is None else {"seed": seed})
        orders.append([key for _ in range(4) for key in taken(api, 16, sampler, task=task) or []])
    first, again, other, zero, default = orders
    assert first == again != other
    assert zero == default
    assert sorted(first) == sorted(other) == sorted(f"k{i}" for i in range(64))


def test_lifo_takes_the_newest(api: Api) -> None:
    weighed(api, *range(5))
    assert taken(api, 2, {"name": "lifo"}) == ["k4", "k3"]
    api.produce(["new"], "n")
    assert taken(api, 2, {"name": "lifo"}) == ["new", "k2"]


def test_a_sampler_and_where_go_together_also_with_a_lease(api: Api) -> None:
    weighed(api, *range(8))
    odd = [{"path": "stat.len", "op": "in", "value": [1, 3, 5]}]
    held = api.claim("n", size=2, sampler={"name": "lifo"}, where=odd, ack="explicit").json()
    assert held["batch"]["keys"] == ["k5", "k3"]
    body = {"token": held["claim"]["token"], "release": held["batch"]["global_indexes"][:1]}
    api.ok("POST", f"/v1/claims/{held['claim']['claim_id']}/ack", body)
    assert taken(api, 2, {"name": "priority", "weight": "stat.len"}, where=odd) == ["k5", "k1"]


def test_null_for_an_argument_means_absent(api: Api) -> None:
    weighed(api, 1, 2)
    assert taken(api, 1, {"name": "lifo", "weight": None, "seed": None}) == ["k1"]


def test_a_row_without_a_number_weighs_the_default(api: Api) -> None:
    weighed(api, 10, None, 90, "long", 60)
    heavy = {"name": "priority", "weight": "stat.len", "weight_default": 70.5}
    assert taken(api, 2, heavy) == ["k2", "k1"]
    assert taken(api, 2, BUDGET | {"weight_default": 90}) == ["k0", "k3"]
    weighed(api, *[None] * 9)
    without = {"name": "priority", "weight": "stat.len"}
    blocking = api.claim("n", size=2, sampler=without).json()["blocking"]
    assert [line["count"] for line in blocking if line["reason"] == "weight-missing"] == [4]
    assert taken(api, 5, heavy) == ["k5", "k6", "k7", "k8", "k4"]


def test_of_a_sealed_partition_rows_of_default_weight_are_not_stranded(api: Api) -> None:
    weighed(api, None, None, None)
    api.ok("POST", "seal", {})
    reply = api.claim("n", size=2, sampler={"name": "priority", "weight": "stat.len"}).json()
    assert (reply["done"], reply["stranded"]) == (True, 3)
    heavy = {"name": "priority", "weight": "stat.len", "weight_default": 0}
    assert [taken(api, 2, heavy), taken(api, 2, heavy)] == [["k0", "k1"], ["k2"]]
