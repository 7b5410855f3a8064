"""Checkpoints through both clients, and what a client that is pinned to an epoch is told. A server of their own."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from batchmeta import (
    AsyncClient,
    CheckpointExists,
    CheckpointNotFound,
    Client,
    EpochMismatch,
    InvalidRequest,
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
