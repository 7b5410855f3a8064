"""Checkpoints as the contract has them, over HTTP: save, list, restore, delete; epochs; what is refused.

The server's journal is in memory, so each is made at once; the ones of a journal in a folder are in
tests/crash/test_checkpoints.py. A restore changes the whole state, so no other test shares this server.
"""

import asyncio
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import httpx
import pytest

from tests.conftest import ServerProcess

from .service import Api, Json, refused
from .test_waiting import client, parked, settled


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(scope="module")
def own_server(folder: Path) -> Iterator[str]:
    server = ServerProcess("--journal", "memory:", "--checkpoints", str(folder))
    yield server.url
    assert server.stop() == 0


@pytest.fixture
def own(own_server: str) -> Iterator[Api]:
    api = Api(own_server)
    with api.http:
        yield api


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return request.node.name.replace("[", "-").replace("]", "")[:100]  # type: ignore[no-any-return]


def save(api: Api, name: str, **headers: str) -> Json:
    reply = api.send("POST", "/v1/checkpoints", {"name": name}, headers=headers)
    assert reply.status_code == 201, reply.text
    return reply.json()


def test_it_is_saved_listed_and_told_of(own: Api, name: str, folder: Path) -> None:
    own.insert("a")
    revision = own.ok("GET", "/v1/server")["revision"]
    made = save(own, name)
    data = (folder / f"{name}.checkpoint").read_bytes()
    assert made == {
        "name": name,
        "revision": made["revision"],
        "bytes": len(data),
        "sha256": sha256(data).hexdigest(),
        "created_at": made["created_at"],
    }
    assert revision <= made["revision"] <= revision + 1
    assert made["created_at"].endswith("Z")
    assert own.ok("GET", f"/v1/checkpoints/{name}") == made
    assert made in own.ok("GET", "/v1/checkpoints")["checkpoints"]


def test_a_restore_goes_back_and_tells_what_may_be_gone(own: Api, name: str) -> None:
    a, _, c = own.insert("a", "b", "c")
    own.produce(["a", "b", "c"], "n")
    save(own, name)
    own.ok("POST", "samples/delete", {"keys": ["a"]})
    own.ok("POST", "production/revoke", {"keys": ["c"], "fields": ["n"]})
    late = own.insert("d", "e")
    before = own.ok("GET", "/v1/server")
    went = own.ok("POST", f"/v1/checkpoints/{name}/restore", {"revived": "unproduced"})
    assert went == {
        "epoch": before["epoch"] + 1,
        "revived": {"count": 2, "ranges": [[a, a], [c, c]]},
        "burnt": [late[0], late[-1]],
    }
    batch = own.ok("GET", "batch-meta?fields=n&include=keys")
    assert (batch["keys"], batch["production_status"]) == (["a", "b", "c"], [0, 1, 0])
    assert own.insert("d") == [late[-1] + 1]
    now = own.ok("GET", "/v1/server")
    assert now["revision"] > before["revision"]
    assert now["epoch"] == went["epoch"]


def test_callers_of_another_epoch_are_refused_and_those_who_wait(own: Api, name: str) -> None:
    own.insert("a")
    epoch = own.ok("GET", "/v1/server")["epoch"]
    right, wrong = {"X-Epoch": str(epoch)}, {"X-Epoch": str(epoch + 1)}
    assert own.send("GET", "", headers=right).status_code == 200
    save(own, name, **right)

    async def meet() -> httpx.Response:
        async with client(own.url) as http:
            waiting = await parked(http, own.path)
            await settled(http, own.path, waiting)
            restored = await http.post(f"/v1/checkpoints/{name}/restore", json={})
            assert restored.status_code == 200
            assert restored.headers["x-epoch"] == str(epoch + 1)
            return await waiting

    refused(asyncio.run(meet()), 409, "epoch-mismatch", "X-Epoch")
    for method, path, body in (
        ("GET", "", None),
        ("GET", "/v1/server", None),
        ("GET", "/v1/checkpoints", None),
        ("POST", "samples", {"count": 1}),
        ("POST", f"/v1/checkpoints/{name}/restore", {}),
    ):
        refused(own.send(method, path, body, headers=right), 409, "epoch-mismatch")
        assert own.send("GET", "/healthz", headers=right).status_code == 200
    assert own.send("GET", "", headers=wrong).status_code == 200


@pytest.mark.parametrize("value", ["x", "-1", "1.0", "", "1" * 20])
def test_an_epoch_that_is_none_is_refused(own: Api, value: str) -> None:
    refused(own.send("GET", "/v1/server", headers={"X-Epoch": value}), 422, "invalid-request", "X-Epoch")


def test_a_key_goes_back_too(own: Api, name: str) -> None:
    first = own.send("POST", "samples", {"count": 1}, headers={"Idempotency-Key": f"{name}-1"})
    save(own, name)
    own.send("POST", "samples", {"count": 1}, headers={"Idempotency-Key": f"{name}-2"})
    own.ok("POST", f"/v1/checkpoints/{name}/restore", {})
    again = own.send("POST", "samples", {"count": 1}, headers={"Idempotency-Key": f"{name}-1"})
    assert (again.content, again.headers["idempotency-replayed"]) == (first.content, "true")
    anew = own.send("POST", "samples", {"count": 1}, headers={"Idempotency-Key": f"{name}-2"})
    assert "idempotency-replayed" not in anew.headers


def test_each_change_is_made_once_for_its_key(own: Api, name: str) -> None:
    made = [
        own.send("POST", "/v1/checkpoints", {"name": name}, headers={"Idempotency-Key": f"{name}-{name}"})
        for _ in range(2)
    ]
    assert made[0].content == made[1].content
    assert [reply.headers.get("idempotency-replayed") for reply in made] == [None, "true"]
    key = {"Idempotency-Key": f"{name}-restore"}
    went = [own.send("POST", f"/v1/checkpoints/{name}/restore", {}, headers=key) for _ in range(2)]
    assert went[0].content == went[1].content
    key = {"Idempotency-Key": f"{name}-delete"}
    gone = [own.send("DELETE", f"/v1/checkpoints/{name}", headers=key) for _ in range(2)]
    assert [reply.content for reply in gone] == [b"{}", b"{}"]
    refused(own.send("DELETE", f"/v1/checkpoints/{name}"), 404, "checkpoint-not-found", name)


def test_a_name_is_chosen_once(own: Api, name: str) -> None:
    save(own, name)
    refused(own.send("POST", "/v1/checkpoints", {"name": name}), 409, "checkpoint-exists", name)
    own.ok("DELETE", f"/v1/checkpoints/{name}")
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/restore")):
        body = {} if method == "POST" else None
        refused(own.send(method, f"/v1/checkpoints/{name}{path}", body), 404, "checkpoint-not-found", name)
    save(own, name)


@pytest.mark.parametrize("bad", ["", ".", "..", ".hidden", "-a", "a/b", "a b", "ä", "a\n", "x" * 101, 7, None])
def test_a_name_is_no_path(own: Api, bad: object, folder: Path) -> None:
    before = sorted(folder.iterdir())
    refused(own.send("POST", "/v1/checkpoints", {"name": bad}), 422, "invalid-request", "name")
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("damage", ["flip", "cut", "none", "foreign", "note"])
def test_a_file_that_is_not_what_was_written_changes_nothing(own: Api, name: str, folder: Path, damage: str) -> None:
    own.insert("a")
    save(own, name)
    own.insert("b")
    path = folder / f"{name}.checkpoint"
    data = path.read_bytes()
    if damage == "none":
        path.unlink()
    elif damage == "note":
        (folder / f"{name}.json").write_bytes(b"{}")
    else:
        path.write_bytes({"flip": data[:-1] + b"\xff", "cut": data[:-1], "foreign": b"hello"}[damage])
    before = own.dump()
    refused(own.send("POST", f"/v1/checkpoints/{name}/restore", {}), 409, "checkpoint-corrupt", name)
    assert own.dump() == before
    own.ok("DELETE", f"/v1/checkpoints/{name}")
