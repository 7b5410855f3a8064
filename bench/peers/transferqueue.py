"""TransferQueue 0.1.9 and 0.1.11 at the end of a pipe: it runs inside the peer's venv and imports nothing of ours.

Both are called the fastest way they offer, as shipped and warmed up. This process is the worker: its asynchronous
client and a storage manager, on one event loop. The controller is the class under the Ray actor, in a process of its
own with its real request thread on its real ZMQ socket. Ray is left out: it starts and finds a controller, but no
request passes through it, and on two cores its daemons would only take time from the peer. What is timed in process is
timed in the process of the controller. All state gets there by the three calls of a real put (keys to indexes, the
storage manager's notification, custom meta); the storage manager stores nothing, so no bytes of data move anywhere.

It is one file, because no other file of the benchmark can be imported there.
"""

import asyncio
import gc
import itertools
import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from time import perf_counter
from typing import Any, TextIO, cast

import torch
import transfer_queue.controller as controllers
from transfer_queue.client import AsyncTransferQueueClient
from transfer_queue.metadata import BatchMeta
from transfer_queue.storage.managers.base import StorageManager
from transfer_queue.utils.enum_utils import Role
from transfer_queue.utils.perf_utils import IntervalPerfMonitor
from transfer_queue.utils.zmq_utils import ZMQMessage, ZMQRequestType, ZMQServerInfo

Json = dict[str, Any]
Verb = Callable[..., Json]

HOST = "127.0.0.1"
PARTITION = "train@step_0"
CONTROLLER = "controller"  # the argument that makes this script the controller
PACKAGES = ("TransferQueue", "torch", "tensordict", "pyzmq", "msgspec", "numpy", "ray")
# The fields that a claim asks for: CLAIMED of bench/profile.py.
CLAIMED = ["input_ids", "position_ids", "responses", "response_mask"]
ROWS_PER_LOAD = 256
ROWS_PER_CLAIM = 8
DIFFERENT_PUTS = 64
WARM_CALLS = 5
WARM_S = 0.3


@dataclass(frozen=True, slots=True)
class Profile:
    """The workload file of bench/profile.py, in TransferQueue's terms."""

    fields: list[Json]
    keys: list[str]
    custom_meta: list[Json]
    backend_meta: dict[str, list[Any]]

    @classmethod
    def read(cls, path: str) -> "Profile":
        whole = json.loads(Path(path).read_text())
        return cls(whole["fields"], whole["keys"], whole["custom_meta"], whole["backend_meta"])

    def rows(self, begin: int, end: int) -> tuple[Json, list[Json], list[Json]]:
        """Schema, cells and custom meta of these rows, as `Worker.put` takes them."""
        schema = {each["name"]: _schema(each, begin, end) for each in self.fields}
        cells = [{name: column[row] for name, column in self.backend_meta.items()} for row in range(begin, end)]
        return schema, cells, self.custom_meta[begin:end]


def _schema(each: Json, begin: int, end: int) -> Json:
    """What its `extract_field_schema` finds in the data of these rows: nested where they are ragged."""
    if each["kind"] == "object":
        return {"dtype": None, "shape": None, "is_nested": False, "is_non_tensor": True}
    shapes = [tuple(shape) for shape in each["shapes"][begin:end]]
    ragged = len(set(shapes)) > 1
    schema = {"dtype": getattr(torch, each["dtype"]), "shape": torch.Size(shapes[0]), "is_nested": ragged}
    return schema | {"is_non_tensor": False} | ({"per_sample_shapes": shapes} if ragged else {})


class NoStorage(StorageManager):  # type: ignore[misc]  # the peer is not there when our types are checked
    """A storage manager that stores nothing, and tells the controller as all others do."""

    async def put_data(self, *_: object, **__: object) -> None: ...

    async def get_data(self, *_: object, **__: object) -> None: ...

    async def clear_data(self, *_: object, **__: object) -> None: ...


class Worker:
    """The calls of a worker, each as their own interface makes it."""

    def __init__(self, controller: ZMQServerInfo) -> None:
        self.client = AsyncTransferQueueClient(client_id="bench", controller_info=controller)
        self.storage = self.client.storage_manager = NoStorage(controller_info=controller, config={})

    async def put(self, partition: str, keys: list[str], schema: Json, cells: list[Json], custom: list[Json]) -> None:
        """The control calls of their `async_kv_batch_put` with a key-value backend."""
        meta = await self.client.async_kv_retrieve_meta(keys, partition, create=True)
        meta.update_custom_meta(custom)
        by_index = dict(zip(meta.global_indexes, cells, strict=True))
        await self.storage.notify_data_update(partition, meta.global_indexes, schema, by_index)
        await self.client.async_set_custom_meta(meta)

    async def load(self, profile: Profile, rows: int) -> None:
        for begin in range(0, rows, ROWS_PER_LOAD):
            end = min(begin + ROWS_PER_LOAD, rows)
            await self.put(PARTITION, profile.keys[begin:end], *profile.rows(begin, end))

    async def fetch(self, names: list[str], rows: int) -> BatchMeta:
        """A whole partition. `async_kv_retrieve_meta` gives the same for a list of keys, and takes longer."""
        return await self.client.async_get_meta(names, rows, PARTITION, mode="force_fetch")


class Controller:
    """The verbs of the controller's process."""

    def __init__(self) -> None:
        # It would bind the address at which other hosts reach this one; loopback is all that is wanted.
        controllers.get_node_ip_address = lambda: HOST
        self._inner = controllers.TransferQueueController.__ray_metadata__.modified_class()

    def verbs(self) -> Mapping[str, Verb]:
        return {"info": self.info, "forget": self.forget, "time": self.time}

    def info(self) -> Json:
        info = self._inner.get_zmq_server_info()
        return {"id": info.id, "ports": info.ports}

    def forget(self) -> Json:
        """The state of a controller just started."""
        self._inner.partitions.clear()
        self._inner.index_manager = controllers.PartitionIndexManager()
        gc.collect()
        return {}

    def time(self, case: str, names: list[str], calls: int) -> Json:
        return {"seconds": _timed(self._case(case, names), calls)}

    def _case(self, case: str, names: list[str]) -> Callable[[], object]:
        inner = self._inner
        indexes = inner.get_partition_index_range(PARTITION)
        generate = partial(inner.generate_batch_meta, PARTITION, indexes, names, "force_fetch")
        backend_meta = partial(inner.partitions[PARTITION].get_field_custom_backend_meta, indexes, names)
        monitor = IntervalPerfMonitor("bench")

        def reply(meta: BatchMeta) -> list[Any]:
            kind = ZMQRequestType.GET_META_RESPONSE
            frames: list[Any] = ZMQMessage.create(kind, inner.controller_id, {"metadata": meta}, "bench").serialize()
            return frames

        def answer() -> list[Any]:
            # What both versions' request loop does with a decoded GET_META.
            with monitor.measure("GET_META"):
                return reply(inner.get_metadata(names, PARTITION, "force_fetch", None, len(indexes), None))

        cases: dict[str, Callable[[], object]] = {
            "generate": generate,
            "backend_meta": backend_meta,
            "encode": partial(reply, generate()),
            "request_to_bytes": answer,
        }
        return cases[case]


class Peer:
    """The verbs of the pipe, and the controller's process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603  # this script again
            [sys.executable, "-I", __file__, CONTROLLER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._requests = cast(TextIO, self._process.stdin)
        self._answers = cast(TextIO, self._process.stdout)
        info = self._control(do="info")
        self._worker = Worker(ZMQServerInfo(Role.CONTROLLER, info["id"], HOST, info["ports"]))
        self._loop = asyncio.Runner()
        self._path = ""
        self._names: list[str] = []
        self._rows = 0
        self._runs = itertools.count()

    def verbs(self) -> Mapping[str, Verb]:
        return {
            "versions": self.versions,
            "load": self.load,
            "result": self.result,
            "time": self.time,
            "rate": self.rate,
        }

    def _control(self, **request: object) -> Json:
        tell(self._requests, request)
        line = self._answers.readline()
        answer: Json = json.loads(line) if line else {"error": "its controller died"}
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def versions(self) -> Json:
        return {"versions": {"python": python_version()} | {name: version(name) for name in PACKAGES}}

    def load(self, profile: str, rows: int) -> Json:
        """The profile is dropped again: objects of ours would lengthen the garbage collections of what is timed."""
        whole = Profile.read(profile)
        if not 0 < rows <= len(whole.keys):
            raise ValueError(f"the profile has {len(whole.keys)} rows, not {rows}")
        self._control(do="forget")
        self._loop.run(self._worker.load(whole, rows))
        self._path, self._names, self._rows = profile, [each["name"] for each in whole.fields], rows
        return {}

    def _hold(self, rows: int) -> None:
        if rows != self._rows:
            self.load(self._path, rows)

    def result(self, rows: int) -> Json:
        """Its answer to a force fetch, in the form in which it is compared with ours."""
        self._hold(rows)
        return self._loop.run(self._result())

    async def _result(self) -> Json:
        meta = await self._worker.fetch(self._names, self._rows)
        return {
            "global_indexes": meta.global_indexes,
            "keys": await self._worker.client.async_kv_retrieve_keys(meta.global_indexes, PARTITION),
            "fields": meta.field_names,
            "production_status": meta.production_status.tolist(),
            "shapes": {name: _shapes(meta, name) for name in meta.field_names},
            "dtypes": {name: _dtype(meta, name) for name in meta.field_names},
            "custom_meta": meta.custom_meta,
            "backend_meta": {name: [row.get(name) for row in _cells(meta)] for name in meta.field_names},
        }

    def time(self, case: str, rows: int, calls: int) -> Json:
        self._hold(rows)
        if case == "end_to_end":
            return {"seconds": self._loop.run(self._time_fetches(calls))}
        return self._control(do="time", case=case, names=self._names, calls=calls)

    async def _time_fetches(self, calls: int) -> list[float]:
        seconds = []
        for _ in range(WARM_CALLS + calls):
            begin = perf_counter()
            meta = await self._worker.fetch(self._names, self._rows)
            touch(meta)
            seconds.append(perf_counter() - begin)
            del meta
        return seconds[WARM_CALLS:]

    def rate(self, case: str, seconds: float, at_once: int) -> Json:
        measure = {"put": self._puts, "claim": self._claims}[case]
        return self._loop.run(measure(f"run_{next(self._runs)}", seconds, at_once))

    async def _puts(self, run: str, seconds: float, at_once: int) -> Json:
        """Puts of one key each, all fields in each, into a partition of their own that is cleared afterwards."""
        profile, numbers = Profile.read(self._path), itertools.count()
        rows = [profile.rows(row, row + 1) for row in range(min(self._rows, DIFFERENT_PUTS))]
        del profile

        async def put() -> None:
            number = next(numbers)
            await self._worker.put(run, [f"{run}_{number}"], *rows[number % len(rows)])

        found = await _rate(put, seconds, at_once)
        _, status = await self._worker.client.async_get_production_status(self._names, run)
        if status.shape != (next(numbers), len(self._names)) or not status.all():
            raise RuntimeError("not every put took effect")  # a storage manager only logs that it was refused
        await self._worker.client.async_clear_partition(run)
        return found

    async def _claims(self, run: str, seconds: float, at_once: int) -> Json:
        """Claims by one task after another: so a partition of usual size lasts, while a larger one slows each claim."""
        numbers, per_task = itertools.count(), self._rows // ROWS_PER_CLAIM

        async def claim() -> None:
            task = f"{run}_{next(numbers) // per_task}"
            meta = await self._worker.client.async_get_meta(CLAIMED, ROWS_PER_CLAIM, PARTITION, "fetch", task)
            if meta.size != ROWS_PER_CLAIM:
                raise RuntimeError(f"a claim of {ROWS_PER_CLAIM} got {meta.size} rows")

        return await _rate(claim, seconds, at_once)


async def _rate(call: Callable[[], Awaitable[None]], seconds: float, at_once: int) -> Json:
    async def again(end: float) -> int:
        done = 0
        while perf_counter() < end:
            await call()
            done += 1
        return done

    async def all_at_once(length: float) -> int:
        end = perf_counter() + length
        return sum(await asyncio.gather(*(again(end) for _ in range(at_once))))

    await all_at_once(WARM_S)
    begin = perf_counter()
    calls = await all_at_once(seconds)
    return {"calls_per_s": calls / (perf_counter() - begin), "calls": calls}


def _timed(call: Callable[[], object], calls: int) -> list[float]:
    seconds = []
    for _ in range(WARM_CALLS + calls):
        begin = perf_counter()
        result = call()
        seconds.append(perf_counter() - begin)
        del result  # not part of the time: the reply would have left by then
    return seconds[WARM_CALLS:]


def touch(meta: BatchMeta) -> None:
    """Read every shape, every member of the custom meta and every cell once, in C."""
    for name in meta.field_names:
        deque(meta.get_shapes(name), 0)
    for row in itertools.chain(meta.custom_meta, _cells(meta)):
        deque(row.values(), 0)


def _cells(meta: BatchMeta) -> list[Json]:
    cells: list[Json] = meta._custom_backend_meta  # noqa: SLF001  # as its storage managers do; there is no other way
    return cells


def _shapes(meta: BatchMeta, name: str) -> list[list[int]] | None:
    return None if meta.field_schema[name]["is_non_tensor"] else [list(shape) for shape in meta.get_shapes(name)]


def _dtype(meta: BatchMeta, name: str) -> str | None:
    dtype = meta.field_schema[name]["dtype"]
    return None if dtype is None else str(dtype).removeprefix("torch.")


def tell(stream: TextIO, message: Json) -> None:
    stream.write(json.dumps(message) + "\n")
    stream.flush()


def serve(verbs: Mapping[str, Verb], answers: TextIO) -> None:
    """Answer each line of stdin until it ends, as it does with the process at its other end."""
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = verbs[request.pop("do")](**request)
        except Exception as error:  # noqa: BLE001  # the boundary: whatever happens is told in one line
            answer = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"}
        tell(answers, answer)


def answering() -> TextIO:
    """The pipe, for answers alone: whatever else is printed, here or in a process started here, goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def main() -> None:
    answers = answering()
    torch.set_num_threads(1)  # as in an actor with one CPU
    side = Controller() if sys.argv[1:] == [CONTROLLER] else Peer()
    serve(side.verbs(), answers)
    os._exit(0)  # their threads wait on sockets for good


if __name__ == "__main__":
    main()
