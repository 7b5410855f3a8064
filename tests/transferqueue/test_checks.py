"""The adapter with each version of TransferQueue that it takes: the checks of checks/, in a process that has it."""

import ast
import json
import os
import subprocess
from collections.abc import Iterator
from functools import cache

import pytest

from tests.conftest import ServerProcess

from .interpreters import ROOT, VERSIONS, interpreter

FOLDER = ROOT / "tests" / "transferqueue" / "checks"


def names() -> Iterator[str]:
    """Read from the source: to import it takes TransferQueue."""
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("check_"):
                yield f"{path.stem}.{node.name}"


@cache
def outcomes(version: str) -> dict[str, str]:
    """How each check failed, empty for those that did not. They run one after the other, against one server."""
    server = ServerProcess("--journal", "memory:")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TQ_LOGGING_LEVEL": "CRITICAL"}
    try:
        done = subprocess.run(
            [str(interpreter(version)), "-m", "tests.transferqueue.checks.run", server.url],
            env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
    finally:
        assert server.stop() == 0
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"check"')]
    return {line["check"]: line["failed"] for line in lines} | ({} if lines else {"": done.stderr})


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", list(names()))
def test_check(name: str, version: str) -> None:
    interpreter(version)
    found = outcomes(version)
    assert found.get(name, found.get("", "it did not run")) == ""
