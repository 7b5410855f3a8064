"""One history for all tests of damage, and a folder for each to spoil it in."""

from pathlib import Path

import pytest

from .history import FILES, History, lived


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    history = lived(tmp_path_factory.mktemp("lived") / "journal")
    assert sorted(history.files) == sorted([*FILES, "lock"])
    return history


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "journal"
