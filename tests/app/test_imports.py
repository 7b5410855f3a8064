"""What each program loads: torch only where a tensor device is asked for, the rest only what it works with.

Each runs in a process of its own, which says at its end what it has loaded and the seconds of CPU it took.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import msgspec
import pytest

from core.journal import BEFORE_FIRST, FileJournal
from tests.conftest import DEADLINE_S, NO_TLS, ROOT
from tests.core.world import add, new_engine

START_CPU_S = 2.0
HEAVY = {"torch", "matplotlib"}
PROGRAM = """
import json, resource, sys
from {module} import main
status = main(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([status, used.ru_utime + used.ru_stime, sorted(sys.modules)]))
"""
JOURNAL_TESTS = (
    *sorted(f"tests.core.{path.stem}" for path in (ROOT / "tests" / "core").glob("test_file_journal*.py")),
    "tests.core.test_power_cut",
    "tests.core.conftest",
    "tests.contracts.test_journals",
    "tests.contracts.conftest",
    "tests.crash.test_resume",
    "tests.model.test_model",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A journal of one entry."""
    engine, path = new_engine(), tmp_path / "journal"
    add(engine, "p", 2)
    with closing(FileJournal(path)) as journal:
        journal.open()
        journal.append(BEFORE_FIRST, msgspec.msgpack.encode(engine.log))
    return path


@contextmanager
def running(module: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", PROGRAM.format(module=module), *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str]) -> tuple[float, set[str]]:
    """Seconds of CPU, and the modules; it ended well."""
    out, _ = process.communicate(timeout=DEADLINE_S)
    status, seconds, modules = json.loads(out.splitlines()[-1])
    assert (status, process.returncode) == (0, 0)
    return seconds, set(modules)


def ran(module: str, *arguments: str) -> set[str]:
    """The modules."""
    with running(module, *arguments) as process:
        return ended(process)[1]


def until_ready(http: httpx.Client) -> None:
    """It says 503 while it reads its journal."""
    assert any(http.get("/readyz").status_code == 200 for _ in range(1_000))


def test_the_service_starts_without_torch_in_little_time() -> None:
    with running("app.__main__", "--port", "0", "--journal", "memory:") as process:
        assert process.stdout is not None
        url = re.search(r"http://\S+", process.stdout.readline())
        assert url is not None
        with httpx.Client(base_url=url[0], verify=NO_TLS) as http:
            until_ready(http)
            assert http.get("/v1/server").json()["device"] == "cpu"
            http.post("/v1/partitions/p/samples", json={"count": 1}).raise_for_status()
        process.terminate()
        seconds, modules = ended(process)
    assert "app.process" in modules
    assert not modules & HEAVY
    assert seconds <= START_CPU_S


def test_a_snapshot_is_made_without_torch(folder: Path) -> None:
    modules = ran("app.snapshots.maker_work", str(folder), "1-1", "1000")
    assert len(list(folder.glob("*.snapshot"))) == 1
    assert not modules & HEAVY


def test_a_folder_is_verified_without_torch(folder: Path) -> None:
    modules = ran("app.__main__", "--verify", "--journal", f"file://{folder}")
    assert "app.verify" in modules
    assert not modules & HEAVY


@pytest.mark.parametrize(
    "modules",
    [("core.engine",), ("batchmeta",), ("bench.cases",), JOURNAL_TESTS],
    ids=["the engine", "the client", "the bench", "the tests of the journal"],
)
def test_torch_does_not_come_with(modules: tuple[str, ...]) -> None:
    text = f"import sys, {', '.join(modules)}; print(sorted({HEAVY!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
