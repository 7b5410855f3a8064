"""The venv in which TransferQueue and our client are together, and whether the tests that need it are to run."""

import os

import pytest

from bench.peers.ray_peer import command_of
from bench.peers.venv import PeerMissing

VERSION = os.environ.get("TEST_TRANSFERQUEUE_VERSION", "0.1.11")
wanted = pytest.mark.skipif(
    os.environ.get("TEST_TRANSFERQUEUE") not in ("1", "all"),
    reason="takes minutes and a venv with TransferQueue: .ci/run asks for it",
)


def command(module: str) -> list[str]:
    """What runs a module there, the venv made if need be. Where it cannot be, the test is skipped; in CI it fails."""
    try:
        return command_of(VERSION, module, print)
    except PeerMissing as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
