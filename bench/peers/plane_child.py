"""TransferQueue as its users start it, on its own controller or on ours, at the end of a pipe.

It runs in the venv that has both. Ray, SimpleStorage and its interface are real on both planes, and what is timed are
calls of its interface on one loop, so bytes of small rows move too. Metadata alone is that of the benchmark's profile.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter
from typing import Any

import torch
import transfer_queue as tq
from omegaconf import OmegaConf
from tensordict import TensorDict
from tensordict.tensorclass import NonTensorStack
from transfer_queue.metadata import BatchMeta

from .plain import Plain
from .ray_child import start_ray
from .transferqueue import Json, Profile, answering, serve, touch

TOLD, STORED, CLEARED = "train@step_0", "stored", "cleared"
TASK = "actor_update"
WARM_CALLS = 3
# Elements of a stored tensor: the storage is the same on both planes, and is not what is compared.
LONGEST = 16
Call = Callable[[], Awaitable[object]]
Prepare = Callable[[], Awaitable[object]]


class Plane:
    """The verbs of the pipe."""

    def __init__(self) -> None:
        self._loop = asyncio.Runner()
        self._numbers = itertools.count()

    def verbs(self) -> Mapping[str, Callable[..., Json]]:
        return {"start": self.start, "load": self.load, "result": self.result, "time": self.time}

    def start(self, url: str | None) -> Json:
        """Start Ray and TransferQueue; with a URL on our service."""
        start_ray()
        if url is not None:
            from batchmeta.transferqueue import install

            install(url)
        tq.init(OmegaConf.create({"backend": {"storage_backend": "SimpleStorage"}}))
        return {}

    def load(self, profile: str) -> Json:
        """Rows of the profile that are told to the controller alone, and as many small ones that are stored."""
        self._profile = Profile.read(profile)
        self._keys = self._profile.keys
        self._names = [each["name"] for each in self._profile.fields]
        self._small = small_rows(self._profile)
        self._schema, _, self._tags = self._profile.rows(0, len(self._keys))
        self._loop.run(self._load())
        return {}

    async def _load(self) -> None:
        self._client = tq.get_client()
        meta = await self._client.async_kv_retrieve_meta(self._keys, TOLD, create=True)
        self._rows = meta.global_indexes
        await self._notify()
        meta.update_custom_meta(self._tags)
        await self._client.async_set_custom_meta(meta)
        await tq.async_kv_batch_put(self._keys, STORED, fields=self._small, tags=self._tags)

    def result(self) -> Json:
        """What the calls that are timed answer, as plain values."""
        return self._loop.run(self._result())

    async def _result(self) -> Json:
        numbers: dict[int, int] = {}
        plain = Plain(lambda index: numbers.setdefault(index, len(numbers)))
        await self._tag()
        return {
            "get_meta": plain(await self._get_meta()),
            "kv_retrieve_meta": plain(await self._retrieve()),
            "kv_list": plain(await tq.async_kv_list(TOLD)),
            "check_consumption": await self._client.async_check_consumption_status(TASK, TOLD),
            "kv_batch_get": plain(await self._get()),
            "tags": plain((await tq.async_kv_list(STORED))[STORED][self._keys[0]]),
            "kv_put": plain(await self._put("result")),
            "clear": await self._cleared(),
        }

    async def _cleared(self) -> Json:
        await self._fill()
        await self._clear()
        return (await tq.async_kv_list(CLEARED)).get(CLEARED, {})

    def time(self, case: str, calls: int) -> Json:
        """Seconds of each of `calls` calls, after a few that are not counted."""
        call, prepare = self._cases()[case]
        return {"seconds": self._loop.run(_timed(call, prepare, calls))}

    def _cases(self) -> dict[str, tuple[Call, Prepare | None]]:
        return {
            "notify": (self._notify, None),
            "kv_put": (lambda: self._put(f"new_{next(self._numbers)}"), None),
            "tags": (self._tag, None),
            "kv_batch_get": (self._get, None),
            "get_meta": (self._get_meta, None),
            "kv_retrieve_meta": (self._retrieve, None),
            "kv_list": (lambda: tq.async_kv_list(TOLD), None),
            "check_consumption": (lambda: self._client.async_check_consumption_status(TASK, TOLD), None),
            "clear": (self._clear, self._fill),
        }

    async def _notify(self) -> None:
        await self._client.storage_manager.notify_data_update(TOLD, self._rows, self._schema)

    async def _put(self, key: str) -> object:
        return await tq.async_kv_put(key, STORED, fields=self._small[0:1], tag=self._tags[0])

    async def _tag(self) -> object:
        return await tq.async_kv_put(self._keys[0], STORED, tag={"status": "success", "global_steps": 42})

    async def _get(self) -> object:
        return await tq.async_kv_batch_get(self._keys[1], STORED)

    async def _get_meta(self) -> BatchMeta:
        meta = await self._client.async_get_meta(self._names, len(self._keys), TOLD, mode="force_fetch")
        touch(meta)
        return meta

    async def _retrieve(self) -> BatchMeta:
        meta = await self._client.async_kv_retrieve_meta(self._keys, TOLD)
        touch(meta)
        return meta

    async def _fill(self) -> None:
        await tq.async_kv_batch_put(self._keys, CLEARED, fields=self._small, tags=self._tags)

    async def _clear(self) -> None:
        await tq.async_kv_clear(self._keys, CLEARED)


def small_rows(profile: Profile) -> TensorDict:
    """All fields of the profile with rows of at most LONGEST elements."""
    rows = len(profile.keys)
    made: dict[str, Any] = {}
    for each in profile.fields:
        if each["kind"] == "object":
            made[each["name"]] = NonTensorStack(*[f"{each['name']} {row}" for row in range(rows)])
        else:
            shape = (min(LONGEST, each["shapes"][0][0]),)
            made[each["name"]] = torch.zeros((rows, *shape), dtype=getattr(torch, each["dtype"]))
    return TensorDict(made, batch_size=rows)


async def _timed(call: Call, prepare: Prepare | None, calls: int) -> list[float]:
    seconds = []
    for _ in range(WARM_CALLS + calls):
        if prepare is not None:
            await prepare()
        begin = perf_counter()
        result = await call()
        seconds.append(perf_counter() - begin)
        del result  # not part of the time
    return seconds[WARM_CALLS:]


def main() -> None:
    answers = answering()
    torch.set_num_threads(1)
    serve(Plane().verbs(), answers)


if __name__ == "__main__":
    main()
