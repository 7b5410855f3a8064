"""The calls of the crash tests, by kind, and how to find out whether a call took effect.

Every call has a name of its own, which is its Idempotency-Key and the mark on the rows that it makes.
"""

import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

PATH = "/v1/partitions/p"
INCLUDE = ["keys", "group_ids", "custom_meta", "backend_meta", "field_status"]
ROWS = 3
Door = Callable[[str, str, Any, dict[str, str]], Awaitable[tuple[int, Any, bytes]]]
"""One request to the service: method, target, body, headers; status, headers and bytes of the reply, or Unanswered."""


class Lost(AssertionError):
    """The service broke its promise."""


class Unanswered(Exception):
    """The service is gone, or says that it cannot know: the call was done, or not."""


@dataclass(frozen=True)
class Row:
    index: int
    key: str | None
    group: Any
    meta: Any
    backend: Any
    is_ready: int


@dataclass(frozen=True)
class Seen:
    """All that can be read: rows by the call that made them, indexes that are consumed, the service's revision."""

    revision: int
    made_by: dict[str, list[Row]]
    consumed: set[int]
    leased: int

    @property
    def rows(self) -> int:
        return sum(map(len, self.made_by.values()))


async def look(door: Door) -> Seen:
    """Read it all. Raises Lost for a row that no call can have left."""
    server = await ask(door, "GET", "/v1/server")
    batch = await ask(door, "POST", f"{PATH}/batch-meta", {"include": INCLUDE, "expand": True})
    if batch is None:
        return Seen(server["revision"], {}, set(), 0)
    assert batch.get("next_cursor") is None, "more rows than one page shows"
    none = [None] * batch["size"]
    columns = [batch.get(name) or none for name in ("keys", "group_ids", "custom_meta")]
    columns += [batch["backend_meta"].get("n", none), batch["field_status"].get("n", none)]
    made_by: dict[str, list[Row]] = {}
    for row in map(Row, batch["global_indexes"], *columns):
        if not row.meta:
            raise Lost(f"row {row.index} is there without what came with it")
        made_by.setdefault(row.meta["of"], []).append(row)
    consumed, leased = await _consumption(door)
    return Seen(server["revision"], made_by, consumed, leased)


async def _consumption(door: Door) -> tuple[set[int], int]:
    consumed, cursor = set(), ""
    while True:
        page = await ask(door, "GET", f"{PATH}/tasks/t/consumption?limit=10000{cursor}")
        status = zip(page["global_indexes"], page["consumption_status"], strict=True)
        consumed |= {index for index, is_consumed in status if is_consumed}
        if page["next_cursor"] is None:
            return consumed, page["leased"]
        cursor = f"&cursor={page['next_cursor']}"


async def ask(door: Door, method: str, target: str, body: Any = None) -> Any:
    """The JSON of a 2xx reply; None where there is no such thing yet."""
    status, _, raw = await door(method, target, body, {})
    assert status < 300 or status == 404, raw
    return json.loads(raw) if status < 300 else None


@dataclass(eq=False)
class Call:
    """`there` says part by part whether what it did is seen; None: that cannot be seen. `raw` is what its caller was
    told. `is_over`: a later call undoes it.
    """

    name: str
    method: str
    path: str
    body: Any
    there: Callable[[Seen], list[bool]] | None
    makes: bool = False
    is_over: bool = False
    raw: bytes | None = None

    @cached_property
    def reply(self) -> Any:
        assert self.raw is not None
        return json.loads(self.raw)


def _keys(name: str) -> list[str]:
    return [f"{name}/{i}" for i in range(ROWS)]


def insert(name: str, with_keys: bool) -> Call:
    keys = _keys(name) if with_keys else [None] * ROWS
    rows = {"keys": keys} if with_keys else {"count": ROWS}
    body = {**rows, "custom_meta": {"const": {"of": name}}, "group_ids": [name] * ROWS}

    def there(seen: Seen) -> list[bool]:
        found = seen.made_by.get(name, [])
        return [i < len(found) and (found[i].key, found[i].group) == (key, name) for i, key in enumerate(keys)]

    return Call(name, "POST", f"{PATH}/samples", body, there, makes=True)


def produce(name: str) -> Call:
    keys = _keys(name)
    body = {
        "keys": keys,
        "create": True,
        "field_schema": {"n": {"dtype": "int64", "lengths": [7] * ROWS}},
        "backend_meta": {"n": [{"at": key} for key in keys]},
        "custom_meta": {"const": {"of": name}},
    }

    def there(seen: Seen) -> list[bool]:
        rows = {row.key: row for row in seen.made_by.get(name, [])}
        return [key in rows and rows[key].is_ready == 1 and rows[key].backend == {"at": key} for key in keys]

    return Call(name, "POST", f"{PATH}/production", body, there, makes=True)


def annotate(name: str, made: Call) -> Call:
    body = {"keys": _keys(made.name), "custom_meta": {"const": {"noted": name}}}

    def there(seen: Seen) -> list[bool]:
        return [row.meta.get("noted") == name for row in seen.made_by.get(made.name, [])] or [False]

    return Call(name, "PATCH", f"{PATH}/custom-meta", body, there)


def delete(name: str, made: Call) -> Call:
    def there(seen: Seen) -> list[bool]:
        gone = ROWS - len(seen.made_by.get(made.name, []))
        return [True] * gone + [False] * (ROWS - gone)

    return Call(name, "POST", f"{PATH}/samples/delete", {"keys": _keys(made.name)}, there)


def claim(name: str) -> Call:
    body = {"fields": ["n"], "batch_size": 2, "min_batch_size": 1, "ack": "explicit", "lease_s": 600}
    return Call(name, "POST", f"{PATH}/tasks/t/claims", body, None)


def accept(name: str, claimed: Call) -> Call:
    reply = claimed.reply
    taken = reply["batch"]["global_indexes"]
    path = f"/v1/claims/{reply['claim']['claim_id']}/ack"
    body = {"token": reply["claim"]["token"]}
    return Call(name, "POST", path, body, lambda seen: [index in seen.consumed for index in taken])


def inserter(name: str) -> Iterator[Call]:
    """Rows with keys, a note on them, and every third time they go again."""
    for n in count():
        made = insert(f"{name}{n}", with_keys=True)
        yield made
        noted = annotate(f"{name}{n}-noted", made)
        yield noted
        if n % 3 == 2:
            made.is_over = noted.is_over = True
            yield delete(f"{name}{n}-gone", made)


def counter(name: str) -> Iterator[Call]:
    """Rows that have no keys, so that nothing but the Idempotency-Key keeps them from being made twice."""
    for n in count():
        yield insert(f"{name}{n}", with_keys=False)


def producer(name: str) -> Iterator[Call]:
    for n in count():
        yield produce(f"{name}{n}")


def taker(name: str) -> Iterator[Call]:
    for n in count():
        claimed = claim(f"{name}{n}")
        yield claimed
        if claimed.reply["claim"] is not None:
            yield accept(f"{name}{n}-accepted", claimed)
