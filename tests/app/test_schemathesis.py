"""Property-based calls over the OpenAPI of a real server, one by one and chained by the links found in it, with every
check that schemathesis has: no 5xx, no reply outside the schema. TEST_LONG=1: 200 examples a route, not a few.
"""

import os
import subprocess
import sys
from pathlib import Path

from app.routes import ALL
from tests.conftest import ROOT, ServerProcess

HERE = Path(__file__).parent
LONG = os.environ.get("TEST_LONG") == "1"
EXAMPLES = "200" if LONG else "5"
PHASES = "examples,coverage,fuzzing,stateful" if LONG else "examples,fuzzing,stateful"


def run(url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """One run of its command line; fixed seed, so that a failure comes again."""
    command = [
        str(Path(sys.executable).with_name("st")),
        "--config-file",
        str(HERE / "schemathesis.toml"),
        "--no-color",
        "run",
        f"{url}/openapi.json",
        "--checks",
        "all",
        "--phases",
        PHASES,
        "--max-examples",
        EXAMPLES,
        "--seed",
        "7",
    ]
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": "tests.app.schemathesis_hooks", "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_no_call_that_the_openapi_allows_or_forbids_breaks_its_promises(tmp_path: Path) -> None:
    server = ServerProcess("--journal", "memory:")
    try:
        found = run(server.url, tmp_path)
        assert found.returncode == 0, found.stdout[-20_000:] + found.stderr[-5_000:]
        count = sum(len(routes.operations) for routes in ALL)
        assert f"Operations:       {count} selected / {count} total" in found.stdout
        assert "stateful" not in found.stdout.lower() or "No links" not in found.stdout
    finally:
        assert server.stop() == 0
