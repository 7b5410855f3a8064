"""The storages as fixtures, each started once; where openYuanrong does not run, its tests are skipped."""

import os
from collections.abc import Iterator

import pytest

from crew.files import files_storage
from crew.memory import memory_storage
from crew.storage import Storage, StorageAddress, StorageUnavailable, connect
from crew.yuanrong_worker import yuanrong_storage


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
        skip_unless_ci(str(error))
        raise
    yield address
    context.__exit__(None, None, None)


@pytest.fixture(scope="session")
def files_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StorageAddress]:
    with files_storage(tmp_path_factory.mktemp("files")) as address:
        yield address


@pytest.fixture(params=["memory", "files", "yuanrong"])
def storage(request: pytest.FixtureRequest) -> Storage:
    return connect(request.getfixturevalue(f"{request.param}_address"))


def skip_unless_ci(reason: str) -> None:
    """A tool is missing: that fails in CI, where all are installed."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
