"""`python -m tests.transferqueue.checks.run URL`: runs every check, and writes a line of JSON for each."""

import asyncio
import importlib
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable
from itertools import count

MODULES = ("putting", "looking", "clearing", "consuming", "connections", "plane", "switching")
_partitions = count()


def checks() -> dict[str, Callable[..., object]]:
    """The checks by module and name."""
    found: dict[str, Callable[..., object]] = {}
    for module in MODULES:
        members = vars(importlib.import_module(f"{__package__}.{module}")).items()
        found |= {f"{module}.{name}": check for name, check in members if name.startswith("check_")}
    return found


def outcome(check: Callable[..., object], url: str) -> str:
    """Empty, or how it failed."""
    given = {"url": url, "partition": f"{check.__name__}-{os.getpid()}-{next(_partitions)}"}
    try:
        result = check(**{name: given[name] for name in inspect.signature(check).parameters})
        if inspect.iscoroutine(result):
            asyncio.run(result)
    except BaseException:  # noqa: BLE001  # whatever it is, the other checks run
        return traceback.format_exc()
    return ""


def main(url: str, wanted: list[str]) -> None:
    for name, check in checks().items():
        if not wanted or name in wanted:
            sys.stdout.write(json.dumps({"check": name, "failed": outcome(check, url)}) + "\n")
            sys.stdout.flush()
    os._exit(0)  # storage units and the controller have threads that never end


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
