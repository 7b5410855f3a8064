"""The two storages as fixtures, each started once; where openYuanrong does not run, its tests are skipped."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.memory import memory_storage
from demo.storage import Storage, StorageAddress, StorageUnavailable, connect
from demo.yuanrong_worker import yuanrong_storage


@pytest.fixture(scope="session")
def memory_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StorageAddress]:
    with memory_storage(tmp_path_factory.mktemp("memory")) as address:
        yield address


@pytest.fixture(scope="session")
def yuanrong_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StorageAddress]:
    context = yuanrong_storage(tmp_path_factory.mktemp("yuanrong"))
    try:
        address = context.__enter__()
    except StorageUnavailable as error:
        _skip_unless_ci(str(error))
        raise
    yield address
    context.__exit__(None, None, None)


@pytest.fixture(params=["memory", "yuanrong"])
def storage(request: pytest.FixtureRequest) -> Storage:
    return connect(request.getfixturevalue(f"{request.param}_address"))


@pytest.fixture(scope="session")
def yuanrong_runs(yuanrong_address: StorageAddress) -> Path:
    """A test that asks for this needs openYuanrong, but no worker of ours."""
    return yuanrong_address.folder


def _skip_unless_ci(reason: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
