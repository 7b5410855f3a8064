"""SIGKILL between the journal and the reply: nobody saw an answer, and the same key gets it from the next life."""

import json
from pathlib import Path

import httpx
import pytest

from tests.conftest import NO_TLS, ROOT, ServerProcess

PATH = "/v1/partitions/p"
MARK = "x-die"
# The process ends itself where a drain is on disk and its answers have not left, once there is a key in that drain.
DIES = f"""
import os, signal
from core.runtime.engine_thread import EngineThread

deliver = EngineThread._deliver

def dying(self):
    if "{MARK}" in self._decided:
        os.kill(os.getpid(), signal.SIGKILL)
    deliver(self)

EngineThread._deliver = dying
"""
CALLS = {
    "insert": ("POST", "samples", {"count": 3, "custom_meta": {"const": {"é": 1}}}),
    "claim": ("POST", "tasks/t/claims", {"fields": ["n"], "batch_size": 2}),
    "no change": ("POST", "samples", {"keys": ["a"]}),
    "delete": ("DELETE", "", None),
}


@pytest.fixture
def dying_path(tmp_path: Path) -> str:
    """A path that makes any Python process started with it take `DIES` first."""
    folder = tmp_path / "dying"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(DIES)
    return f"{folder}:{ROOT}"


def send(url: str, name: str, key: str = MARK) -> httpx.Response:
    method, path, body = CALLS[name]
    with httpx.Client(base_url=url, timeout=30, verify=NO_TLS) as http:
        return http.request(method, f"{PATH}/{path}".rstrip("/"), json=body, headers={"Idempotency-Key": key})


def counts(url: str) -> tuple[int, int]:
    """The service's revision, and how many rows the task consumed."""
    with httpx.Client(base_url=url, timeout=30, verify=NO_TLS) as http:
        consumed = http.get(f"{PATH}/tasks/t/consumption?counts_only=true").json().get("consumed", 0)
        return http.get("/v1/server").json()["revision"], consumed


@pytest.mark.parametrize("name", CALLS)
def test_killed_between_journal_and_reply_the_retry_gets_the_first_answer(
    tmp_path: Path, dying_path: str, name: str
) -> None:
    journal = ("--journal", f"file://{tmp_path}/journal")
    server = ServerProcess(*journal, env={"PYTHONPATH": dying_path})
    write = {"keys": ["a", "b"], "create": True, "field_schema": {"n": {"dtype": "int64", "shape": []}}}
    httpx.post(f"{server.url}{PATH}/production", json=write).raise_for_status()
    revision, _ = counts(server.url)
    with pytest.raises(httpx.TransportError):
        send(server.url, name)
    assert server.kill() < 0

    again = ServerProcess(*journal)
    try:
        made, consumed = counts(again.url)
        assert (made, consumed) == (revision + (name != "no change"), 2 * (name == "claim"))
        first = send(again.url, name)
        assert first.is_success
        assert first.headers["idempotency-replayed"] == "true"
        assert json.loads(first.content)["revision"] == made
        assert counts(again.url) == (made, consumed)
    finally:
        again.kill()

    last = ServerProcess(*journal)
    try:
        second = send(last.url, name)
        assert (second.status_code, second.content) == (first.status_code, first.content)
        assert counts(last.url) == (made, consumed)
    finally:
        assert last.stop() == 0
