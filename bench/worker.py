"""Our client as a worker uses it: `AsyncClient` with its fast transport, in a child process of the bench."""

import asyncio
import math
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from itertools import count
from typing import Any, TypeVar

from batchmeta import AsyncClient, BatchMeta, Const, Retries

from .profile import CLAIMED, FIELDS, PARTS, Json

T = TypeVar("T")
TIMEOUT_S = 120
AT_ONCE = 16


class WrongReply(RuntimeError):
    """A reply with wrong content."""


class Worker:
    """One client on one loop, both kept from call to call."""

    def __init__(self, url: str) -> None:
        self.runner, self.numbers = asyncio.Runner(), count()
        # A call that fails fails the measurement: sent again, it would only look slow.
        self.client = AsyncClient(url, timeout=TIMEOUT_S, retries=Retries(most=0))
        self.run(self.client.ready())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """On the kept loop."""
        return self.runner.run(work)

    def read(self, partition: str, calls: int) -> list[float]:
        """Seconds from the call to the batch, every column of it read as a list."""

        async def many() -> list[float]:
            return [await self._timed_read(partition) for _ in range(calls)]

        return self.run(many())

    async def _timed_read(self, partition: str) -> float:
        began = time.perf_counter()
        touch(await self._read(partition))
        return time.perf_counter() - began

    async def _read(self, partition: str, expand: bool = False) -> BatchMeta:
        return await self.client.read(partition, fields=FIELDS, include=PARTS, compact=True, expand=expand)

    def result(self, partition: str) -> dict[str, Json]:
        """What the service answers, in the canonical form of the equality check."""
        return canonical(self.run(self._read(partition, expand=True)))

    def puts(self, partition: str, rows: list[Json], prefix: str, seconds: float, at_once: int) -> float:
        """One-key puts per second, `at_once` in flight; every reply checked."""
        numbers = count()

        async def put() -> None:
            number = next(numbers)
            done = await self.client.produce(
                partition, keys=[f"{prefix}_{number}"], create=True, **rows[number % len(rows)]
            )
            if done.created != 1:
                raise WrongReply(f"a put of a new key created {done.created} rows")

        return self.run(_rate(put, seconds, at_once))

    def claims(self, partition: str, task: str, size: int, seconds: float, at_once: int) -> float:
        """Claims per second, `at_once` in flight; every reply checked for its rows."""

        async def claim() -> None:
            claimed = await self.client.claim(partition, task, CLAIMED, size, compact=True)
            if claimed.batch.size != size:
                raise WrongReply(f"a claim of {size} got {claimed.batch.size} rows: the pool did not last")

        return self.run(_rate(claim, seconds, at_once))

    def lease(self, partition: str, task: str, worker: str, count: int, ends_in_s: float) -> float:
        """Lease so many rows one by one, all until one moment; the seconds until then."""
        numbers, end = iter(range(count)), time.monotonic() + ends_in_s

        async def claim() -> None:
            for _ in numbers:
                left_s = end - time.monotonic()
                claimed = await self.client.claim(partition, task, CLAIMED, 1, lease_s=left_s, worker=worker)
                if claimed.batch.size != 1:
                    raise WrongReply(f"a claim of 1 got {claimed.batch.size} rows")

        async def all_of_them() -> None:
            await asyncio.gather(*(claim() for _ in range(AT_ONCE)))

        self.run(all_of_them())
        return end - time.monotonic()

    def partitions(self, rows: list[Json], count: int, at_once: int) -> None:
        """So many partitions of one row, `at_once` in flight."""
        numbers = iter(range(count))

        async def make() -> None:
            for number in numbers:
                row = rows[number % len(rows)]
                await self.client.produce(f"small_{number}", keys=["k"], create=True, **row)

        async def all_of_them() -> None:
            await asyncio.gather(*(make() for _ in range(at_once)))

        self.run(all_of_them())

    def put_times(
        self, partition: str, rows: list[Json], prefix: str, calls: int, most_s: float = math.inf
    ) -> list[float]:
        """Seconds of `calls` puts, one after the other; of fewer, once they took `most_s` together."""

        async def many() -> list[float]:
            took: list[float] = []
            for number in range(calls):
                if sum(took) > most_s:
                    break
                began = time.perf_counter()
                await self.client.produce(
                    partition, keys=[f"{prefix}_{number}"], create=True, **rows[number % len(rows)]
                )
                took.append(time.perf_counter() - began)
            return took

        return self.run(many())

    def churn(self, partition: str, body: Json, seconds: float) -> int:
        """Write a batch, read it, delete it, without pause; how often."""

        async def rounds() -> int:
            end = time.perf_counter() + seconds
            done = 0
            while time.perf_counter() < end:
                name = f"{partition}@{next(self.numbers)}"
                await self.client.produce(name, **body)
                touch(await self._read(name))
                await self.client.delete_partition(name)
                done += 1
            return done

        return self.run(rounds())


class PlainWorker(Worker):
    """The same where nothing more is installed than the client needs: httpx carries its calls."""

    def __init__(self, url: str) -> None:
        sys.modules["httptools"] = None  # type: ignore[assignment]  # as Python marks what cannot be imported
        super().__init__(url)


async def _rate(call: Callable[[], Awaitable[None]], seconds: float, at_once: int) -> float:
    end = time.perf_counter() + seconds

    async def again() -> int:
        done = 0
        while time.perf_counter() < end:
            await call()
            done += 1
        return done

    began = time.perf_counter()
    calls = sum(await asyncio.gather(*(again() for _ in range(at_once))))
    return calls / (time.perf_counter() - began)


def arguments(body: Json) -> Json:
    """A `produce` body without its keys, as the client takes it: constants as `Const`."""
    given = {name: part for name, part in body.items() if name not in ("keys", "create")}
    if "backend_meta" in given:
        given["backend_meta"] = {name: _column(column) for name, column in given["backend_meta"].items()}
    return given


def _column(column: Json) -> Json:
    return Const(column["const"]) if isinstance(column, dict) else column


def touch(batch: BatchMeta) -> None:
    """Read every column as a list: none is left as JSON."""
    schema, backend = batch.field_schema or {}, batch.backend_meta or {}
    shapes = [column for field in schema.values() for column in (field.lengths, field.shapes)]
    for column in (batch.global_indexes, batch.production_status, batch.keys, batch.custom_meta, *shapes):
        if column is not None:
            column.to_list()
    for cells in backend.values():
        cells.to_list()


def canonical(batch: BatchMeta) -> dict[str, Json]:
    """Plain lists; indexes counted from the first, since a service gives each index once."""
    schema, backend = batch.field_schema or {}, batch.backend_meta or {}
    return {
        "global_indexes": [index - batch.global_indexes[0] for index in batch.global_indexes],
        "keys": list(batch.keys or ()),
        "fields": list(batch.fields),
        "production_status": list(batch.production_status),
        "shapes": {
            name: None if field.kind == "object" else [list(field.shape_of(row) or ()) for row in range(batch.size)]
            for name, field in schema.items()
        },
        "dtypes": {name: field.dtype for name, field in schema.items()},
        "custom_meta": list(batch.custom_meta or ()),
        "backend_meta": {name: list(cells) for name, cells in backend.items()},
    }
