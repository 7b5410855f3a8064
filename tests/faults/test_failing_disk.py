"""A real server whose disk fills up, fails or forgets, under load: no change is acknowledged that is not kept."""

import threading
from pathlib import Path

import httpx
import pytest

from app.__main__ import main
from tests.conftest import ServerProcess

from .servers import LOST, PATH, Writer, acknowledged, ended, failing, insert, kept, running, tell, until, writing

TURNED_AWAY = {"503 journal-unavailable", "503 not-ready", LOST}
FAULTS = {"fdatasync EIO": "Input/output error", "write ENOSPC": "No space left on device"}


@pytest.fixture(params=FAULTS)
def fault(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def full_and_then_not(server: ServerProcess, folder: Path) -> None:
    """Changes are refused, reads and waits go on; then there is room again, and nothing needs to be done for it."""
    with httpx.Client(base_url=server.url, timeout=60) as http:
        assert insert(http, "before").status_code == 201
        waited: list[httpx.Response] = []
        body = {"fields": ["n"], "batch_size": 1, "wait_s": 60}
        waiting = threading.Thread(
            target=lambda: waited.append(httpx.post(f"{server.url}{PATH}/tasks/t/claims", json=body, timeout=70))
        )
        waiting.start()
        tell(folder, "free")
        until(lambda: insert(http, "refused").status_code == 503)
        assert http.get(f"{PATH}/keys").json()["keys"][0]["key"] == "before"
        assert http.get("/readyz").status_code == 200
        tell(folder, None)
        schema = {"keys": ["before"], "field_schema": {"n": {"dtype": "int64", "shape": []}}}
        assert http.post(f"{PATH}/production", json=schema).status_code == 200
        waiting.join(60)
        assert waited[0].json()["batch"]["keys"] == ["before"]


def fail_under_load(server: ServerProcess, folder: Path, fault: str) -> tuple[list[Writer], tuple[int, list[str]]]:
    with writing(server.url) as writers:
        tell(folder, fault)
        end = ended(server)
    return writers, end


def test_a_disk_that_fails_ends_the_process_and_nothing_acknowledged_is_lost(tmp_path: Path, fault: str) -> None:
    with running(failing(tmp_path)) as server:
        full_and_then_not(server, tmp_path)
        writers, (status, said) = fail_under_load(server, tmp_path, fault)
    assert status == 1
    assert said[-1] == f"CRITICAL stopping: the journal in {tmp_path / 'journal'} failed: {FAULTS[fault]}"
    assert [line for line in said if not line.startswith("WARNING")] == said[-1:], "one line, and no traceback"
    assert {writer.end for writer in writers} <= TURNED_AWAY
    is_torn = fault.startswith("write")
    assert main(["--verify", *("--journal", f"file://{tmp_path}/journal")]) == is_torn
    found = kept(tmp_path)
    assert found == {"before": found["before"], **acknowledged(writers)}, "what was not synced is gone here"
