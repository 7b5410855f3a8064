"""Cases that must hold with several clients at once, each on the real server: races, crowds, and clients that leave.

No test measures time: what waiting calls cost others is counted in tests/core/test_parked.py, and timed by the bench.
"""

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.conftest import DEADLINE_S

from .service import Api, connect, head, refused
from .test_waiting import client, parked, settled

WAITING, PUTS = 200, 1000
SCALAR = {"dtype": "int64", "shape": []}
SEED = 20


def put(api: Api, count: int) -> None:
    """So many puts of one row, one after the other."""
    for number in range(count):
        api.produce([f"k{number}"], "n")


@pytest.mark.asyncio
async def test_1000_unrelated_puts_wake_none_of_200_who_wait_and_one_put_wakes_exactly_one(api: Api) -> None:
    other = Api(api.url)
    async with client(api.url) as http:
        with other.http:
            claims = [await parked(http, api.path) for _ in range(WAITING)]
            await settled(http, api.path, *claims)
            put(other, PUTS)
            await settled(http, api.path, *claims)
            api.produce(["a"], "n")
            await asyncio.wait(claims, return_when=asyncio.FIRST_COMPLETED)
            for _ in range(3):
                await http.get(f"{api.path}/tasks/t/consumption")
            answered = [claim for claim in claims if claim.done()]
            assert [(await claim).json()["batch"]["keys"] for claim in answered] == [["a"]]
            api.ok("DELETE", "")
            await asyncio.gather(*claims)


@pytest.mark.parametrize("ack", ["on_dispatch", "explicit"])
def test_a_client_that_leaves_after_the_decision_gets_its_claim_under_its_key(api: Api, ack: str) -> None:
    api.produce(["a", "b", "c"], "n")
    body = json.dumps({"fields": ["n"], "batch_size": 2, "ack": ack}).encode()
    path, key = f"{api.path}/tasks/t/claims", f"{api.name} {ack}"
    lines = ("Content-Type: application/json", f"Content-Length: {len(body)}", f"Idempotency-Key: {key}")
    with connect(api.url) as connection:
        connection.sendall(head("POST", path, *lines) + body)
        deadline = time.monotonic() + DEADLINE_S
        while taken(api) != 2:
            assert time.monotonic() < deadline
    headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
    again = api.send("POST", path, headers=headers, content=body)
    assert (again.status_code, again.headers["idempotency-replayed"]) == (201, "true")
    assert again.json()["batch"]["keys"] == ["a", "b"]
    assert ("token" in again.json()["claim"]) == (ack == "explicit")
    assert taken(api) == 2


def taken(api: Api) -> int:
    """Rows that task t has or had."""
    counts = api.ok("GET", "tasks/t/consumption?counts_only=true") if api.send("GET", "").is_success else {}
    return int(counts.get("consumed", 0) + counts.get("leased", 0))


@pytest.mark.asyncio
@pytest.mark.parametrize("wait_s", [0, 60])
async def test_of_two_consumers_that_race_for_the_last_batch_one_gets_it(api: Api, wait_s: float) -> None:
    async with client(api.url) as http:
        for number in range(20):
            path, rows = f"{api.path}-{wait_s}-{number}", [f"k{i}" for i in range(4)]
            await http.put(path, json={"expected_samples": 4})
            write = {"keys": rows, "create": True, "field_schema": {"n": SCALAR}}
            body = {"fields": ["n"], "batch_size": 4, "wait_s": wait_s}
            both = [http.post(f"{path}/tasks/t/claims", json=body) for _ in range(2)]
            if wait_s:
                *replies, written = await asyncio.gather(*both, http.post(f"{path}/production", json=write))
            else:
                written = await http.post(f"{path}/production", json=write)
                replies = await asyncio.gather(*both)
            assert written.is_success
            assert sorted(reply.status_code for reply in replies) == [200, 201]
            first, second = sorted(replies, key=lambda reply: -reply.status_code)
            assert first.json()["batch"]["keys"] == rows
            assert (second.json()["batch"]["size"], second.json()["done"]) == (0, True)


@pytest.mark.asyncio
async def test_100_concurrent_patches_of_different_members_are_100_members(api: Api) -> None:
    row = api.insert("a", custom_meta=[{"first": True}])[0]

    async def patch(http: httpx.AsyncClient, number: int) -> int:
        body = {"global_indexes": [row], "custom_meta": [{f"m{number}": number}]}
        reply = await http.patch(f"{api.path}/custom-meta", json=body)
        assert reply.status_code == 200, reply.text
        return int(reply.json()["revision"])

    async with client(api.url) as http:
        revisions = await asyncio.gather(*(patch(http, number) for number in range(100)))
    assert len(set(revisions)) == 100
    (meta,) = api.ok("POST", "batch-meta", {"include": ["custom_meta"]})["custom_meta"]
    assert meta == {"first": True, **{f"m{number}": number for number in range(100)}}


@pytest.mark.asyncio
async def test_eight_readers_that_claim_while_a_writer_puts_see_no_row_without_its_custom_meta(api: Api) -> None:
    keys = [f"k{number}" for number in range(150)]
    api.ok("PUT", "", {"expected_samples": len(keys)})
    seen: dict[str, Any] = {}

    async def write(http: httpx.AsyncClient) -> None:
        for at in range(0, len(keys), 3):
            part = keys[at : at + 3]
            (await http.post(f"{api.path}/samples", json={"keys": part})).raise_for_status()
            meta = [{"of": key} for key in part]
            body = {"keys": part, "field_schema": {"n": SCALAR, "m": SCALAR}, "custom_meta": meta}
            (await http.post(f"{api.path}/production", json=body)).raise_for_status()

    async def read(http: httpx.AsyncClient) -> None:
        async for batch in claimed(http, api.path, {"fields": ["n", "m"], "batch_size": 5, "min_batch_size": 1}):
            for key, meta in zip(batch["keys"], batch["custom_meta"], strict=True):
                assert key not in seen
                seen[key] = meta

    async with client(api.url) as http:
        await asyncio.gather(write(http), *(read(http) for _ in range(8)))
    assert seen == {key: {"of": key} for key in keys}


async def claimed(http: httpx.AsyncClient, path: str, body: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """Batch after batch of task t, columns as arrays, until it is done."""
    while True:
        asked = {"wait_s": 0.2, "expand": True, "include": ["keys", "group_ids", "custom_meta"], **body}
        reply = (await http.post(f"{path}/tasks/t/claims", json=asked)).json()
        if reply["claim"] is not None:
            yield reply["batch"]
        elif reply["done"]:
            return


@pytest.mark.asyncio
async def test_of_writers_with_two_dtypes_one_wins_and_the_other_leaves_neither_field_nor_ready_bit(api: Api) -> None:
    async with client(api.url) as http:
        for number in range(20):
            path = f"{api.path}-{number}"
            (await http.post(f"{path}/samples", json={"keys": ["int64", "float32"]})).raise_for_status()

            def write(dtype: str, path: str = path) -> Any:
                schema = {dtype: SCALAR, "n": {"dtype": dtype, "shape": []}}
                body = {"keys": [dtype], "field_schema": schema, "custom_meta": [{"dtype": dtype}]}
                return http.post(f"{path}/production", json=body)

            replies = dict(
                zip(("int64", "float32"), await asyncio.gather(write("int64"), write("float32")), strict=True)
            )
            (winner,) = (dtype for dtype, reply in replies.items() if reply.is_success)
            (loser,) = set(replies) - {winner}
            assert refused(replies[loser], 409, "dtype-conflict")["fields"] == ["n"]
            fields = (await http.get(path)).json()["fields"]
            assert {name: (field["dtype"], field["produced"]) for name, field in fields.items()} == {
                winner: ("int64", 1),
                "n": (winner, 1),
            }
            include = {"keys": [winner, loser], "include": ["custom_meta", "field_status"], "expand": True}
            batch = (await http.post(f"{path}/batch-meta", json=include)).json()
            assert batch["field_status"] == {winner: [1, 0], "n": [1, 0]}
            assert batch["custom_meta"] == [{"dtype": winner}, {}]


@pytest.mark.asyncio
async def test_groups_put_shuffled_and_interleaved_with_other_partitions_go_out_whole(api: Api) -> None:
    size, groups, paths = 4, list(range(12)), [f"{api.path}-{which}" for which in "abc"]
    rows = [(path, group, answer) for path in paths for group in groups for answer in range(size)]
    random.Random(SEED).shuffle(rows)
    found: dict[str, list[list[int]]] = {path: [] for path in paths}

    async def write(http: httpx.AsyncClient, own: list[tuple[str, int, int]]) -> None:
        for path, group, answer in own:
            body = {"keys": [f"{group}_{answer}"], "create": True, "field_schema": {"n": SCALAR}, "group_ids": [group]}
            (await http.post(f"{path}/production", json=body)).raise_for_status()

    async def read(http: httpx.AsyncClient, path: str) -> None:
        sampler = {"name": "grpo_group", "n_samples_per_prompt": size}
        body = {"fields": ["n"], "batch_size": 2 * size, "min_batch_size": size, "sampler": sampler}
        async for batch in claimed(http, path, body):
            found[path].append(batch["group_ids"])

    async with client(api.url) as http:
        for path in paths:
            (await http.put(path, json={"expected_samples": size * len(groups)})).raise_for_status()
        writers = [write(http, rows[at::5]) for at in range(5)]
        await asyncio.gather(*writers, *(read(http, path) for path in paths for _ in range(2)))
    for path in paths:
        whole = [batch[at : at + size] for batch in found[path] for at in range(0, len(batch), size)]
        assert sorted(whole) == [[group] * size for group in groups], (path, SEED)
