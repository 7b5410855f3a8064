"""The machine and the versions of a run: enough to compare runs, nothing that identifies the machine or its user."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = (
    "torch",
    "numpy",
    "orjson",
    "msgspec",
    "fastapi",
    "starlette",
    "uvicorn",
    "uvloop",
    "httptools",
    "httpx",
)


def machine() -> dict[str, Any]:
    """CPU model, cores that this process may use, memory, kernel."""
    return {
        "cpu": _line("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(int((_line("/proc/meminfo", "MemTotal") or "0 kB").split()[0]) / 2**20, 1),
        "kernel": platform.release(),
    }


def versions() -> dict[str, str]:
    """Of Python and what the service and its client run on."""
    return {"python": platform.python_version()} | {name: found for name in PACKAGES if (found := _version(name))}


def now() -> str:
    """UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _line(path: str, name: str) -> str | None:
    with Path(path).open() as lines:
        return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)
