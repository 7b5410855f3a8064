"""Claims, samplers, consumption and reset as the contract has them, over HTTP. Waiting is in test_waiting.py."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from .service import Api, refused


def grpo(n: int, **more: Any) -> dict[str, Any]:
    return {"sampler": {"name": "grpo_group", "n_samples_per_prompt": n, **more}}


def reasons(reply: Any) -> dict[str, Any]:
    """What is in the way, by reason."""
    return {line["reason"]: line for line in reply["blocking"]}


def counts(api: Api, task: str = "t") -> Any:
    body = api.ok("GET", f"tasks/{task}/consumption?counts_only=true")
    return [body[name] for name in ("consumed", "total", "done")]


def test_a_claim_hands_out_ready_rows_once_lowest_first(api: Api) -> None:
    indexes = api.produce(["a", "b", "c"], "n")["global_indexes"]
    reply = api.claim("n", size=2)
    body = reply.json()
    assert reply.status_code == 201
    assert set(body) == {"partition_id", "revision", "claim", "batch"}
    assert body["claim"] == {"claim_id": body["claim"]["claim_id"], "task": "t", "ack": "on_dispatch", "worker": None}
    assert body["batch"]["global_indexes"] == indexes[:2]
    assert (body["batch"]["is_ready"], body["batch"]["revision"]) == (True, body["revision"])
    assert api.claim("n").json()["batch"]["global_indexes"] == indexes[2:]
    assert api.claim("n").json()["claim"] is None


def test_claim_ids_differ(api: Api) -> None:
    api.produce(["a", "b"], "n")
    first, second = (api.claim("n").json()["claim"]["claim_id"] for _ in range(2))
    assert first != second


def test_tasks_are_independent(api: Api) -> None:
    api.produce(["a"], "n")
    assert [api.claim("n", task=task).status_code for task in ("t", "u", "t", "u")] == [201, 201, 200, 200]


def test_every_requested_field_must_be_produced_also_those_not_known(api: Api) -> None:
    api.produce(["a", "b"], "n")
    api.produce(["b"], "m")
    body = api.claim("n", "m", "unknown").json()
    assert (body["claim"], body["ready"], body["wanted"], body["done"]) == (None, 0, 1, False)
    assert body["batch"]["missing_fields"] == ["unknown"]
    assert reasons(body)["field-unknown"]["field"] == "unknown"
    assert reasons(body)["not-produced"]["field"] == "m"
    assert reasons(body)["not-produced"]["count"] == 1
    assert api.claim("n", "m").json()["batch"]["keys"] == ["b"]


def test_a_claim_shows_what_is_asked_for(api: Api) -> None:
    more: dict[str, Any] = {"custom_meta": {"const": {"x": 1}}, "group_ids": {"const": "g"}}
    api.produce(["a", "b"], "n", **more)
    shown = {"include": ["custom_meta", "group_ids"], "expand": True}
    batch = api.claim("n", size=2, **shown).json()["batch"]
    assert (batch["custom_meta"], batch["group_ids"]) == ([{"x": 1}] * 2, ["g", "g"])
    assert "backend_meta" not in batch


def test_without_waiting_there_is_the_minimum_or_nothing(api: Api) -> None:
    api.produce(["a", "b", "c"], "n")
    assert api.claim("n", size=4).json()["ready"] == 3
    assert api.claim("n", size=9, min_batch_size=4).status_code == 200
    assert api.claim("n", size=9, min_batch_size=3).json()["batch"]["size"] == 3


def test_a_partition_that_is_not_there_is_an_answer_and_a_deleted_one_410(api: Api) -> None:
    body = api.claim("n").json()
    assert (body["revision"], body["ready"], body["batch"]["size"]) == (0, 0, 0)
    assert "partition-absent" in reasons(body)
    api.insert("a")
    api.ok("DELETE", "")
    refused(api.send("POST", "tasks/t/claims", {"fields": ["n"], "batch_size": 1}), 410, "partition-cleared")


def test_what_is_in_the_way_is_told_with_up_to_ten_rows(api: Api) -> None:
    indexes = api.ok("POST", "samples", {"count": 12})["global_indexes"]
    assert reasons(api.claim("n").json())["field-unknown"]["count"] == 12
    schema = {"n": {"dtype": "int64", "shape": []}}
    api.ok("POST", "production", {"global_indexes": indexes[:1], "field_schema": schema})
    assert api.claim("n").status_code == 201
    found = reasons(api.claim("n").json())
    assert (found["not-produced"]["count"], found["not-produced"]["global_indexes"]) == (11, indexes[1:11])
    assert (found["consumed"]["count"], found["consumed"]["global_indexes"]) == (1, indexes[:1])
    api.ok("POST", "production", {"global_indexes": indexes, "field_schema": schema})
    assert api.claim("n", size=11).status_code == 201
    assert "exhausted" in reasons(api.claim("n").json())


def test_whole_groups_or_nothing(api: Api) -> None:
    keys = ["x0", "y0", "x1", "y1", "z0"]
    api.insert(*keys, group_ids=["x", "y", "x", "y", "z"])
    api.produce(["x0", "y0", "y1", "z0"], "n")
    body = api.claim("n", size=4, **grpo(2)).json()
    assert (body["claim"], body["ready"]) == (None, 4)
    assert reasons(body)["group-incomplete"]["group_ids"] == ["z"]
    batch = api.claim("n", size=2, **grpo(2)).json()["batch"]
    assert batch["keys"] == ["y0", "y1"]
    api.produce(["x1"], "n")
    assert api.claim("n", size=2, **grpo(2)).json()["batch"]["keys"] == ["x0", "x1"]


def test_a_group_that_is_too_large_is_never_handed_out(api: Api) -> None:
    api.produce(["a", "b", "c"], "n", group_ids={"const": 7})
    body = api.claim("n", size=2, **grpo(2)).json()
    assert reasons(body)["group-oversized"]["group_ids"] == [7]
    assert api.claim("n", size=3, **grpo(3)).status_code == 201


def test_7_and_text_7_are_two_groups(api: Api) -> None:
    api.produce(["a", "b"], "n", group_ids=[7, "7"])
    assert api.claim("n", size=2, **grpo(2)).status_code == 200
    assert api.claim("n", size=2, **grpo(1)).status_code == 201


def test_groups_by_position_count_rows_ever_inserted(api: Api) -> None:
    api.produce(["a", "b", "c", "d", "e", "f"], "n")
    api.ok("POST", "samples/delete", {"keys": ["a"]})
    batch = api.claim("n", size=4, **grpo(2, group_by="position")).json()["batch"]
    assert batch["keys"] == ["c", "d", "e", "f"]
    assert api.claim("n", size=2, **grpo(2, group_by="position")).json()["claim"] is None


def test_a_window_of_two_groups_is_never_whole(api: Api) -> None:
    api.produce(["a", "b", "c", "d"], "n", group_ids=["x", "y", "z", "z"])
    assert api.claim("n", size=2, **grpo(2, group_by="position")).json()["batch"]["keys"] == ["c", "d"]
    assert api.claim("n", size=2, **grpo(2, group_by="position")).json()["claim"] is None


def test_consumption_is_told_per_sample_and_in_counts(api: Api) -> None:
    indexes = api.produce(["a", "b", "c"], "n")["global_indexes"]
    assert api.claim("n", size=2).status_code == 201
    body = api.ok("GET", "tasks/t/consumption")
    body.pop("revision")
    assert body == {
        "partition_id": api.name,
        "global_indexes": indexes,
        "consumption_status": [1, 1, 0],
        "consumed": 2,
        "leased": 0,
        "dead": 0,
        "total": 3,
        "done": False,
        "next_cursor": None,
    }
    short = api.ok("GET", "tasks/t/consumption?counts_only=true")
    assert not {"global_indexes", "consumption_status"} & set(short)


def test_asking_registers_nothing(api: Api) -> None:
    api.produce(["a"], "n")
    assert counts(api, "u") == [0, 1, False]
    assert api.claim("m", task="u").status_code == 200
    assert api.ok("GET", "")["tasks"] == {}


def test_total_counts_what_was_consumed_and_cleared_and_what_is_expected(api: Api) -> None:
    api.ok("PUT", "", {"expected_samples": 4})
    api.produce(["a", "b"], "n")
    assert counts(api) == [0, 4, False]
    assert api.claim("n").status_code == 201
    api.ok("POST", "samples/delete", {"keys": ["a"]})
    assert counts(api) == [1, 4, False]
    assert counts(api, "u") == [0, 3, False]
    api.produce(["c", "d"], "n")
    assert counts(api) == [1, 4, False]
    assert api.claim("n", size=3).status_code == 201
    assert counts(api) == [4, 4, True]
    assert api.claim("n").json()["done"]


def test_without_expected_samples_nothing_is_ever_done(api: Api) -> None:
    api.produce(["a"], "n")
    assert api.claim("n").status_code == 201
    assert counts(api) == [1, 1, False]


def test_reset_lets_one_task_begin_again(api: Api) -> None:
    api.produce(["a", "b"], "n")
    for task in ("t", "u"):
        assert api.claim("n", task=task, size=2).status_code == 201
    assert api.ok("POST", "tasks/t/consumption/reset")["reset"] == 2
    assert (counts(api), counts(api, "u")) == ([0, 2, False], [2, 2, False])
    assert api.claim("n", size=2).status_code == 201
    assert api.ok("POST", "tasks/nobody/consumption/reset", {})["reset"] == 0


def test_reset_of_all_tasks(api: Api) -> None:
    api.produce(["a", "b"], "n")
    assert api.claim("n", task="t", size=2).status_code == 201
    assert api.claim("n", task="u").status_code == 201
    assert api.ok("POST", "consumption/reset", {})["reset"] == 3
    assert (counts(api), counts(api, "u")) == ([0, 2, False], [0, 2, False])
    assert api.ok("POST", "consumption/reset")["reset"] == 0


@pytest.mark.parametrize("path", ["consumption/reset", "tasks/t/consumption/reset"])
def test_reset_of_a_partition_that_is_not_there_is_404(api: Api, path: str) -> None:
    refused(api.send("POST", path, {}), 404, "partition-not-found")
    refused(api.send("GET", "tasks/t/consumption"), 404, "partition-not-found")


def test_two_claims_at_once_never_get_the_same_row(api: Api) -> None:
    api.produce([f"k{i}" for i in range(64)], "n")
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: api.claim("n", size=4).json(), range(20)))
    taken = [index for reply in replies for index in reply["batch"]["global_indexes"]]
    assert len(taken) == len(set(taken)) == 64
