"""The specification's operations as requests to a real server, and its answers read from replies. Nothing is sent here.

A claim's rows are told by their keys; `Held` is what its client needs to settle them.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.histories.spec import FATES

SCHEMA = {"n": {"dtype": "int64", "shape": []}}
LEASE_S = 600


@dataclass(frozen=True)
class Held:
    """A claim that its client knows: its operation's number, its name and token, its rows by key."""

    number: int
    claim_id: str
    token: str
    rows: Mapping[str, int]


@dataclass(frozen=True)
class Request:
    """`read` gives the answer of a 2xx reply; 409 lease-lost is an answer too."""

    name: str
    arguments: tuple[Any, ...]
    method: str
    path: str
    body: Any
    read: Callable[[Any], Any]
    held: Held | None = None

    @property
    def content(self) -> bytes:
        return b"" if self.body is None else json.dumps(self.body).encode()

    def answer(self, status: int, body: Any) -> Any:
        """What the service said. An AssertionError for what it should not have said."""
        if status == 409 and self.held is not None:
            assert body["code"] == "lease-lost", body
            return frozenset(key for key, index in self.held.rows.items() if index in body["global_indexes"])
        assert status < 300, (self, body)
        return self.read(body)


def write(name: str, partition: str, keys: tuple[str, ...]) -> Request:
    """`insert` or `produce`."""
    body: dict[str, Any] = {"keys": list(keys)}
    path = f"/v1/partitions/{partition}/samples"
    if name == "produce":
        path = f"/v1/partitions/{partition}/production"
        body |= {"create": True, "field_schema": SCHEMA}
    return Request(name, (keys,), "POST", path, body, lambda reply: reply["created"])


def claim(partition: str, task: str, most: int, least: int, leased: bool) -> Request:
    body: dict[str, Any] = {"fields": ["n"], "batch_size": most, "min_batch_size": least}
    body |= {"include": ["keys"], "expand": True}
    body |= {"ack": "explicit", "lease_s": LEASE_S} if leased else {}
    path = f"/v1/partitions/{partition}/tasks/{task}/claims"

    def read(reply: Any) -> Any:
        return reply["ready"] if reply["claim"] is None else tuple(reply["batch"]["keys"])

    return Request("claim", (task, most, least, leased), "POST", path, body, read)


def held(number: int, reply: Any) -> Held | None:
    """What a claim's client may settle now, None where nothing was leased."""
    info = reply["claim"]
    if info is None or info["ack"] != "explicit":
        return None
    rows = dict(zip(reply["batch"]["keys"], reply["batch"]["global_indexes"], strict=True))
    return Held(number, info["claim_id"], info["token"], rows)


def ack(of: Held, named: tuple[tuple[str, str], ...]) -> Request:
    by_fate = {fate: [of.rows[key] for key, said in named if said == fate] for fate in FATES}
    rejected = [{"global_index": index, "reason": "bad"} for index in by_fate["rejected"]]
    body = {"token": of.token, "accept": by_fate["accepted"], "release": by_fate["released"], "reject": rejected}

    def read(reply: Any) -> Any:
        return tuple(reply[member] for member in ("accepted", "released", "rejected", "open"))

    return Request("ack", (of.number, named), "POST", f"/v1/claims/{of.claim_id}/ack", body, read, of)


def delete(partition: str, keys: tuple[str, ...]) -> Request:
    path, body = f"/v1/partitions/{partition}/samples/delete", {"keys": list(keys)}
    return Request("delete", (keys,), "POST", path, body, lambda reply: reply["cleared"])


def reset(partition: str, task: str) -> Request:
    path = f"/v1/partitions/{partition}/tasks/{task}/consumption/reset"
    return Request("reset", (task,), "POST", path, {}, lambda reply: reply["reset"])


def counts(partition: str, task: str) -> Request:
    path = f"/v1/partitions/{partition}/tasks/{task}/consumption?counts_only=true"

    def read(reply: Any) -> Any:
        return tuple(reply[member] for member in ("consumed", "leased", "dead", "total"))

    return Request("counts", (task,), "GET", path, None, read)


def read(partition: str, keys: tuple[str, ...]) -> Request:
    body = {"keys": list(keys), "fields": ["n"], "include": ["keys"], "expand": True}

    def status(reply: Any) -> Any:
        there = dict(zip(reply["keys"], reply["production_status"], strict=True))
        return tuple(there.get(key) for key in keys)

    return Request("read", (keys,), "POST", f"/v1/partitions/{partition}/batch-meta", body, status)
