"""Interpreters that have a version of TransferQueue and our client; the suite's own has no TransferQueue.

TEST_TRANSFERQUEUE=1: the newest that the adapter takes; `all`: each.
"""

import os
from pathlib import Path

import pytest

ASKED = os.environ.get("TEST_TRANSFERQUEUE")
VERSIONS = ("0.1.11", "0.1.9", "0.1.8") if ASKED == "all" else ("0.1.11",)
ROOT = Path(__file__).parent.parent.parent


def interpreter(version: str) -> Path:
    """Made if need be, which takes minutes once; `TEST_TRANSFERQUEUE` asks for that.

    `TRANSFERQUEUE_PYTHON` names a template for interpreters that exist, such as /venvs/{version}/bin/python.
    """
    given = os.environ.get("TRANSFERQUEUE_PYTHON")
    if given:
        return Path(given.format(version=version))
    if ASKED not in ("1", "all"):
        pytest.skip("TEST_TRANSFERQUEUE=1 runs it, with a venv for each version of TransferQueue")
    from bench.peers.venv import python_with_ours

    return python_with_ours("TransferQueue", version, print)
