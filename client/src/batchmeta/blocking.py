"""The base of the generated `Client` (blocking_generated.py): an `AsyncClient`, and a thread that runs its calls."""

import os
import weakref
from collections.abc import Coroutine, Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from .aio import AsyncClient
from .aio.loop import SamplerOf
from .leases import Claims
from .loop_thread import LoopThread
from .retries import DEFAULT, Retries
from .wire import requests
from .wire.requests import Include

T = TypeVar("T")


class BlockingBase:
    """The service for code that does not await: notebooks, DataLoader workers, scripts. Safe to use from threads.

    `timeout`, `retries`, `transport`, `pin_epoch` and errors are those of AsyncClient. Works where an event loop
    already runs (and blocks that loop meanwhile). After a fork the child opens connections and a thread of its own.
    """

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8700",
        *,
        timeout: float = 30.0,
        retries: Retries = DEFAULT,
        transport: httpx.AsyncBaseTransport | None = None,
        pin_epoch: bool = False,
    ) -> None:
        self._aio = AsyncClient(base_url, timeout=timeout, retries=retries, transport=transport, pin_epoch=pin_epoch)
        # By process, because a lock that another thread held at a fork is held for ever in the child.
        self._threads: dict[int, LoopThread] = {}
        # Also at the end of the process and when nobody holds the client any more: a notebook seldom closes.
        self._finalizer = weakref.finalize(self, _close, self._aio, self._threads)

    def close(self) -> None:
        """Close the connections and end the thread; calls that wait elsewhere are ConnectionLost.

        A call after it is a RuntimeError.
        """
        self._finalizer()

    def new_epoch(self) -> None:
        """After EpochMismatch: with `pin_epoch`, this client goes on in the epoch that its next call finds."""
        self._aio.new_epoch()

    def claims(
        self,
        partition_id: str,
        task: str,
        fields: Iterable[str],
        batch_size: int,
        *,
        lease_s: float = 600.0,
        worker: str | None = None,
        min_batch_size: int | None = None,
        wait_s: float = 30.0,
        sampler: requests.Sampler | Mapping[str, Any] | SamplerOf | None = None,
        where: Iterable[requests.Condition | Mapping[str, Any]] | None = None,
        include: Iterable[Include] | None = None,
        compact: bool = False,
        expand: bool = False,
    ) -> Claims:
        """Batch after batch with a lease, until the task is done; all else as AsyncClient.claims says:

        for lease in client.claims("train@0", "actor", ["ids"], 16, worker="actor-0"):
            with lease as batch:
                train(batch)
        """
        loop = self._aio.claims(
            partition_id,
            task,
            fields,
            batch_size,
            lease_s=lease_s,
            worker=worker,
            min_batch_size=min_batch_size,
            wait_s=wait_s,
            sampler=sampler,
            where=where,
            include=include,
            compact=compact,
            expand=expand,
        )
        return Claims(loop, self._run)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if not self._finalizer.alive:
            work.close()
            raise RuntimeError("the client is closed")
        # setdefault is atomic, and a LoopThread costs nothing until it runs something.
        return self._threads.setdefault(os.getpid(), LoopThread()).run(work)


def _close(aio: AsyncClient, threads: dict[int, LoopThread]) -> None:
    thread = threads.pop(os.getpid(), None)
    if thread is not None:
        thread.close(aio.aclose)
