"""`Client` is `AsyncClient` for code that does not await, anywhere: in threads and where a loop runs already."""

import asyncio
import gc
import inspect
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from batchmeta import AsyncClient, Client, ConnectionLost, PartitionNotFound, loop_thread
from batchmeta.loop_thread import LoopThread
from scripts.generate_client import WRITTEN, generated
from tests.client.service import Scripted, batch, loopback, ok, partition, problem


def test_the_generated_file_is_up_to_date() -> None:
    assert WRITTEN.read_text() == generated(), "run python scripts/generate_client.py"


def test_every_call_has_its_twin_with_the_same_types() -> None:
    calls = dict(inspect.getmembers(AsyncClient, inspect.iscoroutinefunction))
    for name, call in calls.items():
        if name[0] != "_" and name != "aclose":
            twin = getattr(Client, name)
            assert inspect.signature(twin) == inspect.signature(call)
            assert twin.__doc__ == call.__doc__


def test_answers_and_problems_come_through() -> None:
    script = Scripted(ok(batch([4])), problem("partition-not-found"))
    with Client(transport=httpx.MockTransport(script)) as client:
        assert client.read("p", fields=["x"]).global_indexes == [4]
        with pytest.raises(PartitionNotFound):
            client.partition("p")


@pytest.mark.asyncio
async def test_it_works_where_a_loop_runs_already() -> None:
    asyncio.get_running_loop()
    with loopback() as server, Client(server.url) as client:
        assert client.partition("p").partition_id == "/v1/partitions/p"


def test_threads_may_share_it() -> None:
    with loopback() as server, Client(server.url) as client, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: client.partition(f"p{i}").partition_id, range(40)))
    assert found == [f"/v1/partitions/p{i}" for i in range(40)]


def test_closing_ends_the_thread_and_later_calls_are_refused() -> None:
    before = threading.active_count()
    client = Client(transport=httpx.MockTransport(Scripted(ok(partition()))))
    client.partition("p")
    assert threading.active_count() == before + 1
    client.close()
    client.close()
    assert threading.active_count() == before
    with pytest.raises(RuntimeError, match="closed"):
        client.partition("p")


def test_closing_frees_a_call_that_waits_in_another_thread() -> None:
    started = threading.Event()

    async def stay(request: httpx.Request) -> httpx.Response:
        started.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets that event")

    client = Client(transport=httpx.MockTransport(stay))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.claim, "p", "t", ["x"], 1, wait_s=60)
        started.wait()
        client.close()
        with pytest.raises(ConnectionLost, match="closed meanwhile"):
            waiting.result(timeout=30)


def test_a_client_that_nobody_holds_any_more_ends_its_thread() -> None:
    before = threading.active_count()
    client = Client(transport=httpx.MockTransport(Scripted(ok(partition()))))
    client.partition("p")
    del client
    gc.collect()
    assert threading.active_count() == before


def test_an_interrupt_cancels_the_call_and_leaves_the_client_usable() -> None:
    started = threading.Event()

    async def stay(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/stay"):
            started.set()
            await asyncio.Event().wait()
        return ok(partition())

    with Client(transport=httpx.MockTransport(stay)) as client:
        text = "interrupted"
        with pytest.raises(KeyboardInterrupt, match=text):
            _interrupted(client, started, text)
        assert client.partition("p").partition_id == "p"


def _interrupted(client: Client, started: threading.Event, text: str) -> None:
    def raise_it(number: int, frame: object) -> None:
        raise KeyboardInterrupt(text)

    before = signal.signal(signal.SIGINT, raise_it)
    main = threading.get_ident()

    def interrupt() -> None:
        started.wait()
        signal.pthread_kill(main, signal.SIGINT)

    killer = threading.Thread(target=interrupt)
    killer.start()
    try:
        client.partition("stay")
    finally:
        killer.join()
        signal.signal(signal.SIGINT, before)


def test_a_client_left_open_does_not_disturb_the_end_of_the_process() -> None:
    with loopback() as server:
        text = f"from batchmeta import Client; c = Client({server.url!r}); c.partition('p')"
        command = [sys.executable, "-W", "always", "-c", text]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_call_that_takes_many_looks_ends_with_its_own_result_a_timeout_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_thread, "LOOK_UP_S", 0.001)
    thread = LoopThread()

    async def close() -> None:
        pass

    with pytest.raises(TimeoutError):
        thread.run(asyncio.wait_for(asyncio.Event().wait(), 0.02))
    assert thread.run(asyncio.sleep(0.02, "slept")) == "slept"
    thread.close(close)
