"""Interpreters that have a version of TransferQueue and our client; the suite's own has no TransferQueue."""

import os
from pathlib import Path

import pytest

VERSIONS = ("0.1.11", "0.1.9", "0.1.8")
ROOT = Path(__file__).parent.parent.parent


def interpreter(version: str) -> Path:
    """Made if need be, which takes minutes once; `TEST_TRANSFERQUEUE=1` asks for that.

    `TRANSFERQUEUE_PYTHON` names a template for interpreters that exist, such as /venvs/{version}/bin/python.
    """
    given = os.environ.get("TRANSFERQUEUE_PYTHON")
    if given:
        return Path(given.format(version=version))
    if os.environ.get("TEST_TRANSFERQUEUE") != "1":
        pytest.skip("TEST_TRANSFERQUEUE=1 runs it, with a venv for each version of TransferQueue")
    from bench.peers.venv import python_with_ours

    return python_with_ours("TransferQueue", version, print)
