"""Where openYuanrong is not installed, its tests are skipped."""

import importlib.util

import pytest

from crew.yuanrong_worker import NOT_INSTALLED
from tests.crew.conftest import skip_unless_ci


@pytest.fixture
def yuanrong_runs() -> None:
    if importlib.util.find_spec("yr") is None:
        skip_unless_ci(NOT_INSTALLED)
