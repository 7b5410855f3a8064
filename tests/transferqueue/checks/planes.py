"""Clients of both planes in one process, without a Ray cluster: real storage units and controllers as plain objects.

A unit and the controller are Ray actors whose classes also work without Ray; their sockets are the real ones.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import signature
from typing import Any

import transfer_queue as tq
from transfer_queue import interface
from transfer_queue.client import AsyncTransferQueueClient, TransferQueueClient
from transfer_queue.controller import TransferQueueController
from transfer_queue.storage.clients.base import StorageClientFactory, StorageKVClient
from transfer_queue.storage.managers.base import KVStorageManager, StorageManagerFactory
from transfer_queue.storage.simple_storage import SimpleStorageUnit

from batchmeta.connection import Connection
from batchmeta.transferqueue.samplers import spec_of
from batchmeta.transferqueue.seam import arm
from batchmeta.transferqueue.server_info import HttpServerInfo
from batchmeta.transferqueue.settings import settings_from

ROWS = 10_000


@StorageClientFactory.register("MemoryStorageClient")
class MemoryStore(StorageKVClient):
    """A key-value backend in memory, with per-cell meta as Mooncake has it. `fails`: its next clears raise."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config)
        self.cells: dict[str, Any] = {}
        self.fails = 0

    def put(self, keys: list[str], values: list[Any]) -> list[Any]:
        self.cells.update(zip(keys, values, strict=True))
        return [None if hasattr(value, "dtype") else {"packed_size": len(str(value))} for value in values]

    def get(
        self, keys: list[str], shapes: Any = None, dtypes: Any = None, custom_backend_meta: Any = None
    ) -> list[Any]:
        for key, dtype, meta in zip(keys, dtypes, custom_backend_meta, strict=True):
            found = self.cells[key]
            assert (meta is None) == hasattr(found, "dtype"), (key, meta)
            assert dtype == getattr(found, "dtype", None), (key, dtype)
        for key, shape in zip(keys, shapes, strict=True):
            expected = getattr(self.cells[key], "shape", None)
            assert shape is None if expected is None else tuple(shape) == (tuple(expected) or (1,)), (key, shape)
        return [self.cells[key] for key in keys]

    def clear(self, keys: list[str], custom_backend_meta: Any = None) -> None:
        if self.fails:
            self.fails -= 1
            raise OSError("the backend is away")
        for key in keys:
            self.cells.pop(key, None)


@StorageManagerFactory.register("MemoryStore")
class MemoryManager(KVStorageManager):
    """TransferQueue's own key-value manager over it."""

    def __init__(self, controller_info: Any, config: dict[str, Any], **named: Any) -> None:
        super().__init__(controller_info, {**config, "client_name": "MemoryStorageClient"}, **named)

    def _get_executor(self) -> Any:
        return None  # asks Ray how many threads there may be


def units(count: int = 2) -> list[Any]:
    kind = SimpleStorageUnit.__ray_metadata__.modified_class
    if "storage_unit_size" in signature(kind).parameters:  # before 0.1.11
        return [kind(storage_unit_size=ROWS) for _ in range(count)]
    return [kind({"num_data_storage_units": count}) for _ in range(count)]


def info(url: str, sampler: Any = tq.SequentialSampler, polling: bool = True, **settings: Any) -> HttpServerInfo:
    return HttpServerInfo(settings_from(os.environ, url, **settings), spec_of(sampler), polling)


def ours(url: str, sampler: Any = tq.SequentialSampler, polling: bool = True, **settings: Any) -> Any:
    """A client on batchmeta, with SimpleStorage."""
    return with_units(info(url, sampler, polling, **settings))


def ours_in_memory(url: str, **settings: Any) -> Any:
    """A client on batchmeta, with a key-value backend; its `cells` are in `client.storage_manager.storage_client`."""
    client = TransferQueueClient("ours", info(url, **settings))
    client.initialize_storage_manager("MemoryStore", {})
    return client


def theirs(sampler: Any = tq.SequentialSampler, polling: bool = True) -> Any:
    """A client on TransferQueue's own plane."""
    controller = TransferQueueController.__ray_metadata__.modified_class(sampler=sampler, polling_mode=polling)
    client = with_units(controller.zmq_server_info)
    client.controller = controller
    return client


def with_units(controller_info: Any, kind: type = TransferQueueClient) -> Any:
    started = units()
    client = kind(f"client of {type(controller_info).__name__}", controller_info)
    infos = {unit.zmq_server_info.id: unit.zmq_server_info for unit in started}
    client.initialize_storage_manager("SimpleStorage", {"zmq_info": infos})
    client.units = started
    return client


def asynchronous(url: str) -> Any:
    """TransferQueue's client for code that awaits, without a loop of its own."""
    return with_units(info(url), AsyncTransferQueueClient)


@contextmanager
def used(client: Any) -> Iterator[Any]:
    """`tq.kv_put` and all others of the interface go through it; closed at the end."""
    before, interface._TQ_CLIENT = interface._TQ_CLIENT, client
    try:
        yield client
    finally:
        interface._TQ_CLIENT = before
        client.close()


@contextmanager
def counted() -> Iterator[list[str]]:
    """The calls that are sent to the service."""
    calls: list[str] = []
    send = Connection.send

    async def counting(self: Connection, call: Any, *arguments: Any, **named: Any) -> Any:
        calls.append(f"{call.method} {call.path}")
        return await send(self, call, *arguments, **named)

    Connection.send = counting  # type: ignore[method-assign]
    try:
        yield calls
    finally:
        Connection.send = send  # type: ignore[method-assign]


def raised(kind: type[BaseException], call: Any, *arguments: Any, **named: Any) -> BaseException:
    """The error of a call that must fail."""
    try:
        found = call(*arguments, **named)
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}, but {found!r}")


arm()
