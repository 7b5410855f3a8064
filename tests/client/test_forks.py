"""A forked worker opens connections of its own, and whatever it does its parent's stay usable."""

import asyncio
import gc
import multiprocessing
import os
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe

import pytest

from batchmeta import AsyncClient, Client
from tests.client.service import loopback


def _in_child(work: Callable[[], object]) -> int:
    """Run it in a forked child; the child's exit status."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001 - whatever it was, the child must not run on as a second pytest
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_forked_child_opens_a_connection_of_its_own() -> None:
    with loopback() as server, Client(server.url) as client:
        client.partition("p")

        def work() -> None:
            assert client.partition("q").partition_id == "/v1/partitions/q"
            client.close()

        assert _in_child(work) == 0
        client.partition("p")
        parent, child, again = server.ports
        assert parent == again != child


def test_a_child_that_drops_its_copy_does_not_cut_its_parent_off() -> None:
    with loopback() as server, Client(server.url, timeout=2.0) as client:
        client.partition("p")

        def work() -> None:
            warnings.simplefilter("ignore")  # raised as an error within __del__, one would keep the copy alive
            client._threads.clear()
            del client._aio._connection._transports
            gc.collect()

        assert _in_child(work) == 0
        client.partition("p")
        assert len(set(server.ports)) == 1


def test_a_fork_while_another_thread_starts_the_loop_does_not_hang_the_child() -> None:
    with loopback() as server, Client(server.url) as client:
        client.partition("p")
        (thread,) = client._threads.values()
        with thread._lock:  # as if another thread were just inside
            assert _in_child(lambda: client.partition("q")) == 0


@pytest.mark.asyncio
async def test_the_async_client_too() -> None:
    with loopback() as server:
        async with AsyncClient(server.url, timeout=2.0) as client:
            await client.partition("p")
            assert _in_child(lambda: asyncio.run(_use(client))) == 0
            await client.partition("p")
        parent, child, again = server.ports
        assert parent == again != child


async def _use(client: AsyncClient) -> None:
    assert (await client.partition("q")).partition_id == "/v1/partitions/q"
    await client.aclose()


def _worker(client: Client, pipe: Pipe) -> None:
    pipe.send([client.partition(name).partition_id for name in ("a", "b")])


def test_workers_of_multiprocessing_as_a_dataloader_starts_them() -> None:
    fork = multiprocessing.get_context("fork")
    with loopback() as server, Client(server.url) as client:
        client.partition("p")
        pipes = [fork.Pipe() for _ in range(2)]
        workers = [fork.Process(target=_worker, args=(client, theirs)) for _, theirs in pipes]
        for worker in workers:
            worker.start()
        for (ours, _), worker in zip(pipes, workers, strict=True):
            assert ours.poll(30)
            assert ours.recv() == ["/v1/partitions/a", "/v1/partitions/b"]
            worker.join(30)
            assert worker.exitcode == 0
        client.partition("p")
        assert len(set(server.ports)) == 3
