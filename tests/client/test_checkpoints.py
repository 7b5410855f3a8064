"""Checkpoints through both clients, and what a client that is pinned to an epoch is told. A server of their own."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from hashlib import sha256
from pathlib import Path

import httpx
import pytest

from batchmeta import (
    AsyncClient,
    CheckpointCorrupt,
    CheckpointExists,
    CheckpointNotFound,
    Client,
    EpochMismatch,
    InvalidRequest,
    Retries,
    UnreadableReply,
)
from tests.conftest import ServerProcess

FIELD = {"ids": {"dtype": "int64", "shape": [4]}}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("checkpoints")
    server = ServerProcess("--journal", "memory:", "--checkpoints", str(folder))
    yield server.url
    assert server.stop() == 0


def test_the_blocking_one_saves_goes_back_and_deletes(url: str) -> None:
    with Client(url) as client:
        client.produce("blocking", FIELD, keys=["a", "b"], create=True)
        saved = client.create_checkpoint("blocking")
        assert client.checkpoint("blocking") == saved
        assert saved in client.checkpoints()
        with pytest.raises(CheckpointExists):
            client.create_checkpoint("blocking")
        client.delete("blocking", keys=["a"])
        late = client.insert("blocking", keys=["c"])
        epoch = client.server().epoch
        went = client.restore_checkpoint("blocking", revived="unproduced")
        assert (went.epoch, went.revived.count) == (epoch + 1, 1)
        assert went.burnt == (late.global_indexes[0],) * 2
        assert list(client.read("blocking", fields=["ids"]).production_status) == [0, 1]
        client.delete_checkpoint("blocking")
        with pytest.raises(CheckpointNotFound):
            client.restore_checkpoint("blocking")
        with pytest.raises(InvalidRequest):
            client.create_checkpoint("../blocking")


@pytest.mark.asyncio
async def test_one_that_is_pinned_is_refused_once_the_state_went_back(url: str) -> None:
    async with AsyncClient(url) as trainer, AsyncClient(url, pin_epoch=True) as worker:
        await worker.produce("pinned", FIELD, keys=["a"], create=True)
        await trainer.create_checkpoint("pinned")
        waiting = asyncio.create_task(worker.claim("pinned", "t", ["more"], 1, wait_s=60))
        await trainer.restore_checkpoint("pinned")
        with pytest.raises(EpochMismatch):
            await waiting
        with pytest.raises(EpochMismatch):
            await worker.partition("pinned")
        await trainer.partition("pinned")  # it asked for it, and goes on
        worker.new_epoch()
        assert (await worker.partition("pinned")).num_samples == 1


@pytest.mark.asyncio
async def test_one_that_is_pinned_may_restore_itself(url: str) -> None:
    async with AsyncClient(url, pin_epoch=True) as trainer:
        await trainer.produce("itself", FIELD, keys=["a"], create=True)
        await trainer.create_checkpoint("itself")
        first = await trainer.restore_checkpoint("itself")
        assert (await trainer.partition("itself")).num_samples == 1
        assert (await trainer.restore_checkpoint("itself")).epoch == first.epoch + 1


def test_a_file_goes_down_and_up_and_is_restored(url: str, tmp_path: Path) -> None:
    into = tmp_path / "trainer" / "step.checkpoint"
    into.parent.mkdir()
    into.write_bytes(b"an older one")
    with Client(url) as client:
        client.produce("moved", FIELD, keys=["a", "b"], create=True)
        saved = client.create_checkpoint("moved")
        assert client.download_checkpoint("moved", into) == saved
        assert (len(into.read_bytes()), sha256(into.read_bytes()).hexdigest()) == (saved.bytes, saved.sha256)
        with pytest.raises(CheckpointExists):
            client.create_checkpoint("moved")
        assert client.upload_checkpoint("moved", str(into)) == saved
    server = ServerProcess("--journal", "memory:")
    with Client(server.url) as fresh:
        took = fresh.upload_checkpoint("step-1", into)
        assert (took.name, took.sha256, took.revision) == ("step-1", saved.sha256, saved.revision)
        assert fresh.upload_checkpoint("step-1", into) == took
        fresh.restore_checkpoint("step-1")
        assert list(fresh.read("moved", fields=["ids"]).production_status) == [1, 1]
        into.write_bytes(into.read_bytes()[:-1])
        with pytest.raises(CheckpointExists):
            fresh.upload_checkpoint("step-1", into)
        with pytest.raises(CheckpointCorrupt):
            fresh.upload_checkpoint("step-2", into)
        assert [one.name for one in fresh.checkpoints()] == ["step-1"]
    assert server.stop() == 0
    assert list(into.parent.iterdir()) == [into]


def test_what_cannot_be_saved_or_sent_leaves_nothing(url: str, tmp_path: Path) -> None:
    with Client(url) as client:
        client.create_checkpoint("left")
        with pytest.raises(CheckpointNotFound):
            client.download_checkpoint("never", tmp_path / "never")
        with pytest.raises(FileNotFoundError):
            client.download_checkpoint("left", tmp_path / "nowhere" / "left")
        with pytest.raises(IsADirectoryError):
            client.download_checkpoint("left", tmp_path)
        with pytest.raises(FileNotFoundError):
            client.upload_checkpoint("absent", tmp_path / "absent")
        with pytest.raises(TypeError, match="path: "):
            client.upload_checkpoint("absent", 7)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_both_from_an_event_loop_and_each_is_sent_again(url: str, tmp_path: Path) -> None:
    into, broken = tmp_path / "file", Breaking(httpx.AsyncHTTPTransport())
    at_once = Retries(first_s=0.0, longest_s=0.0)

    async def work() -> tuple[str, str]:
        async with AsyncClient(url) as client:
            saved = await client.create_checkpoint("loop")
            assert await client.download_checkpoint("loop", into) == saved
        async with AsyncClient(url, transport=broken, retries=at_once) as client:
            took = await client.upload_checkpoint("again", into)
            assert await client.download_checkpoint("again", into) == took
        return saved.sha256, took.sha256

    assert asyncio.run(work()) == (sha256(into.read_bytes()).hexdigest(),) * 2
    assert broken.calls == 5  # the upload and the download twice each, and what tells of the checkpoint
    assert list(tmp_path.iterdir()) == [into]


def test_another_file_than_the_one_told_of_is_not_saved(tmp_path: Path) -> None:
    told = {"name": "a", "revision": 1, "bytes": 4, "sha256": "00" * 32, "created_at": "2026-01-01T00:00:00.000Z"}

    def answered(request: httpx.Request) -> httpx.Response:
        is_file = request.url.path.endswith("/content")
        return httpx.Response(200, content=b"some") if is_file else httpx.Response(200, json=told)

    mock = httpx.MockTransport(answered)
    with Client("http://there", transport=mock) as client, pytest.raises(UnreadableReply, match="ask again"):
        client.download_checkpoint("a", tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


class Breaking(httpx.AsyncBaseTransport):
    """Breaks each call about a file the first time: an upload when it was answered, a download in its middle."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self.inner, self.calls, self.broken = inner, 0, set[str]()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.calls += 1
        answer = await self.inner.handle_async_request(request)
        if not request.url.path.endswith("/content") or request.method in self.broken:
            return answer
        self.broken.add(request.method)
        await answer.aread()
        await answer.aclose()
        if request.method == "PUT":
            raise httpx.ReadError("cut", request=request)
        return httpx.Response(answer.status_code, headers=answer.headers, stream=Cut(answer.content))

    async def aclose(self) -> None:
        await self.inner.aclose()


class Cut(httpx.AsyncByteStream):
    """Half of a body, and then nothing."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self.body[: len(self.body) // 2]
        raise httpx.RemoteProtocolError("cut")
