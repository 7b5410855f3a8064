"""Load from `wrk`, a program in C, so that the server and not the client is the limit. Each .lua file is one load."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
SPARE_S = 60


class WrkMissing(Exception):
    """wrk is not on PATH."""

    def __init__(self) -> None:
        super().__init__("wrk is not on PATH: apt-get install wrk")


class WrkFailed(RuntimeError):
    """A load run that broke or got replies that are not right; one line."""


def require() -> str:
    """Where it is. Raises WrkMissing."""
    found = shutil.which("wrk")
    if found is None:
        raise WrkMissing
    return found


def load(script: str, url: str, seconds: float, at_once: int, *arguments: object) -> dict[str, Any]:
    """Run `script`.lua; what its `done` printed: requests, seconds, errors, p50_ms, p99_ms. Raises WrkFailed."""
    # wrk takes whole seconds, and its first half second calibrates.
    whole = max(1, round(seconds))
    command = [require(), "-t1", f"-c{at_once}", f"-d{whole}s", "--timeout", "30s", "-s", f"{FOLDER / script}.lua", url]
    command += ["--", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=whole + SPARE_S, check=False)  # noqa: S603  (ours)
    said = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not said:
        raise WrkFailed(f"wrk {script}: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")
    result: dict[str, Any] = json.loads(said[-1])
    if result["errors"] or not result["requests"]:
        raise WrkFailed(f"wrk {script}: {result['errors']} wrong of {result['requests']} replies")
    return result
