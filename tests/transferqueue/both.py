"""The venv in which TransferQueue and our client are together, and whether the tests that need it are to run."""

import os
from pathlib import Path

import pytest

from bench.peers.venv import PeerMissing, python_with_ours

VERSION = os.environ.get("TEST_TRANSFERQUEUE_VERSION", "0.1.11")
wanted = pytest.mark.skipif(
    os.environ.get("TEST_TRANSFERQUEUE") != "1",
    reason="takes minutes and a venv with TransferQueue: .ci/run asks for it",
)


def python_of_both() -> Path:
    """The interpreter of that venv, made if need be; the test is skipped where it cannot be, and fails in CI."""
    try:
        return python_with_ours("TransferQueue", VERSION, print)
    except PeerMissing as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
