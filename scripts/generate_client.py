"""Writes client/src/batchmeta/blocking_generated.py: for every call of AsyncClient a blocking twin, types and all.

Run it after a change under client/src/batchmeta/aio/; tests/client/test_blocking.py fails until then.
"""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "client" / "src" / "batchmeta"
WRITTEN = PACKAGE / "blocking_generated.py"
WIDTH = 120
SOURCES = ("partitions", "writing", "reading", "consuming", "claims", "clears", "checkpoints")
HEAD = '''"""`Client`: every call of `AsyncClient`, blocking.

Generated: change aio/ instead, and run scripts/generate_client.py.
"""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal

from .batch import BatchMeta
from .blocking import BlockingBase
from .schema import FieldSchema
from .values import (
    BackendMeta,
    Claim,
    Clear,
    Consumption,
    KeyChanges,
    KeyLine,
    PatchedBackendMeta,
    Produced,
    ProductionStatus,
    Tagged,
)
from .wire import replies, requests
from .wire.requests import Include

__all__ = ["Client"]


class Client(BlockingBase):
    __doc__ = BlockingBase.__doc__
'''


def generated() -> str:
    """The text of the file."""
    return HEAD + "".join(f"\n{twin}" for name in SOURCES for twin in _twins(PACKAGE / "aio" / f"{name}.py"))


def _twins(source: Path) -> list[str]:
    text = source.read_text()
    classes = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    calls = [node for kind in classes for node in kind.body if isinstance(node, ast.AsyncFunctionDef)]
    return [_twin(call, text.splitlines()) for call in calls]


def _twin(call: ast.AsyncFunctionDef, lines: list[str]) -> str:
    # Signature and docstring are copied as they stand, formatting and all.
    copied = "\n".join(lines[call.lineno - 1 : call.body[0].end_lineno]).replace("async def ", "def ", 1)
    passed = [argument.arg for argument in call.args.args[1:]]
    passed += [f"{argument.arg}={argument.arg}" for argument in call.args.kwonlyargs]
    return f"{copied}\n{_body(f'self._aio.{call.name}', passed)}\n"


def _body(called: str, passed: list[str]) -> str:
    # Broken where ruff format breaks it, so that the file written is the file checked in.
    line = f"{called}({', '.join(passed)})"
    if len(line) + len("        return self._run()") <= WIDTH:
        return f"        return self._run({line})"
    if len(line) + 12 > WIDTH:
        line = "\n".join([f"{called}(", *(f"                {each}," for each in passed), "            )"])
    return f"        return self._run(\n            {line}\n        )"


if __name__ == "__main__":
    WRITTEN.write_text(generated())
