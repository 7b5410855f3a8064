"""A checkpoint's file goes from one server to another, as real processes; uploads that a kill or a full disk cuts."""

import json
from pathlib import Path

import httpx

from tests.conftest import ServerProcess

from .service import Json, refused
from .test_contract_checkpoint_content import path, raw, uploads, wait_for


def state(http: httpx.Client) -> Json:
    """All that a caller sees of the partition."""
    base = "/v1/partitions/train"
    include = "keys,group_ids,field_schema,custom_meta,backend_meta,field_status"
    parts = (f"{base}/batch-meta?include={include}", f"{base}/keys", f"{base}/tasks/t/consumption", "/v1/clears")
    whole = [http.get(part).json() for part in ("/v1/partitions", base, *parts)]
    return json.loads(json.dumps(whole), object_hook=lambda one: {k: v for k, v in one.items() if k != "revision"})


def test_a_state_moves_to_a_fresh_server(tmp_path: Path) -> None:
    first = ServerProcess("--journal", f"file://{tmp_path}/first")
    schema = {"n": {"dtype": "int64", "lengths": [3, 4, 5]}}
    body = {"keys": ["a", "b", "c"], "create": True, "field_schema": schema, "custom_meta": [{"w": 1}, {}, {"w": [2]}]}
    with httpx.Client(base_url=first.url, timeout=60) as http:
        assert http.post("/v1/partitions/train/production", json=body).status_code == 200
        claim = {"fields": ["n"], "batch_size": 2}
        assert http.post("/v1/partitions/train/tasks/t/claims", json=claim).status_code == 201
        made = http.post("/v1/checkpoints", json={"name": "step"}).json()
        before, file = state(http), http.get(path("step")).content
    assert first.stop() == 0
    second = ServerProcess("--journal", f"file://{tmp_path}/second")
    with httpx.Client(base_url=second.url, timeout=60) as http:
        took = http.put(path("step"), content=file)
        assert (took.status_code, took.json()["revision"], took.json()["sha256"]) == (
            201,
            made["revision"],
            made["sha256"],
        )
        assert http.get("/v1/partitions").json()["partitions"] == []
        assert http.post("/v1/checkpoints/step/restore").status_code == 200
        assert state(http) == before
    assert second.kill() != 0
    third = ServerProcess("--journal", f"file://{tmp_path}/second")
    with httpx.Client(base_url=third.url, timeout=60) as http:
        assert state(http) == before
    assert third.stop() == 0


def test_a_server_killed_in_the_middle_lists_nothing_and_tidies_at_its_start(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    server = ServerProcess("--journal", f"file://{tmp_path}/j", "--checkpoints", str(folder))
    with raw(server.url, "cut", 1_000) as connection:
        connection.sendall(bytes(100))
        wait_for(folder, "cut", 1)
        server.kill()
    assert len(uploads(folder, "cut")) == 1
    server = ServerProcess("--journal", f"file://{tmp_path}/j", "--checkpoints", str(folder))
    with httpx.Client(base_url=server.url) as http:
        assert http.get("/v1/checkpoints").json() == {"checkpoints": []}
        refused(http.get(path("cut")), 404, "checkpoint-not-found")
    assert list(folder.iterdir()) == []
    assert server.stop() == 0


def test_a_disk_without_room_is_503(tmp_path: Path) -> None:
    server = ServerProcess("--journal", "memory:", "--checkpoints", str(tmp_path), "--min-free-bytes", str(10**17))
    with httpx.Client(base_url=server.url) as http:
        for data in (b"some", iter([b"some"])):
            problem = refused(http.put(path("full"), content=data), 503, "journal-unavailable", "no room")
            assert problem["retryable"] is True
    assert list(tmp_path.iterdir()) == []
    assert server.stop() == 0
