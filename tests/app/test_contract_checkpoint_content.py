"""The files of checkpoints over HTTP: what a download and an upload answer, and what is refused. Servers that end in
the middle, and a state that moves, are in test_checkpoint_moves.py.
"""

import json
import socket
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from core.journal import BEFORE_FIRST
from core.snapshot.checkpoint_file import encode
from crew.processes import wait_until
from tests.conftest import ServerProcess

from .service import Api, refused

MOST = 200_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(scope="module")
def own_server(folder: Path) -> Iterator[str]:
    server = ServerProcess(
        "--journal", "memory:", "--checkpoints", str(folder), "--max-checkpoint-bytes", str(MOST), "--max-body-bytes",
        "1000",
    )  # fmt: skip
    yield server.url
    assert server.stop() == 0


@pytest.fixture
def own(own_server: str) -> Iterator[Api]:
    api = Api(own_server)
    with api.http:
        yield api


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return request.node.originalname[:100]  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def saved(own_server: str, folder: Path) -> bytes:
    """The file of a checkpoint."""
    with httpx.Client(base_url=own_server) as http:
        assert http.post("/v1/partitions/p/samples", json={"count": 3}).status_code == 201
        assert http.post("/v1/checkpoints", json={"name": "saved"}).status_code == 201
    return (folder / "saved.checkpoint").read_bytes()


def path(name: str) -> str:
    return f"/v1/checkpoints/{name}/content"


def put(api: Api, name: str, data: Any, **headers: str) -> httpx.Response:
    return api.http.put(
        path(name), content=data, headers={key.replace("_", "-"): value for key, value in headers.items()}
    )


def digest(data: bytes) -> str:
    return f"sha-256=:{b64encode(sha256(data).digest()).decode()}:"


def test_a_download_is_the_file_with_its_digest(own: Api, saved: bytes) -> None:
    reply = own.http.get(path("saved"))
    assert (reply.status_code, reply.content) == (200, saved)
    told = {key: reply.headers[key] for key in ("content-type", "content-length", "repr-digest", "etag")}
    assert told == {
        "content-type": "application/octet-stream",
        "content-length": str(len(saved)),
        "repr-digest": digest(saved),
        "etag": f'"{sha256(saved).hexdigest()}"',
    }
    assert reply.headers["content-disposition"] == 'attachment; filename="saved.checkpoint"'
    assert (reply.headers["cache-control"], reply.headers["vary"]) == ("no-cache", "Accept")
    assert {"x-request-id", "x-epoch"} <= set(reply.headers)
    head = own.http.head(path("saved"))
    assert (head.status_code, head.content) == (200, b"")
    assert {key: head.headers[key] for key in told} == told
    again = own.http.get(path("saved"), headers={"If-None-Match": f"W/{told['etag']}"})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", told["etag"])


def test_an_accept_that_rules_the_file_out_is_406(own: Api, saved: bytes) -> None:
    for accept in ("application/json", "application/octet-stream;q=0, */*"):
        refused(own.http.get(path("saved"), headers={"Accept": accept}), 406, "not-acceptable", "octet-stream")
    for accept in ("*/*", "application/*", "text/html, application/octet-stream"):
        assert own.http.get(path("saved"), headers={"Accept": accept}).content == saved


def test_what_is_not_there_or_damaged_is_not_sent(own: Api, saved: bytes, folder: Path, name: str) -> None:
    refused(own.http.get(path(name)), 404, "checkpoint-not-found")
    assert put(own, name, saved).status_code == 201
    file = folder / f"{name}.checkpoint"
    file.write_bytes(saved[:-1] + bytes([saved[-1] ^ 1]))
    refused(own.http.get(path(name)), 409, "checkpoint-corrupt", "not the one that was written")
    refused(put(own, name, saved), 409, "checkpoint-corrupt")
    file.unlink()
    refused(own.http.get(path(name)), 409, "checkpoint-corrupt", "only its note")
    assert own.ok("DELETE", f"/v1/checkpoints/{name}") == {}


def test_an_upload_is_listed_as_what_it_was_saved_as(own: Api, saved: bytes, folder: Path, name: str) -> None:
    reply = put(own, name, saved, repr_digest=digest(saved), content_type="application/octet-stream")
    assert reply.status_code == 201, reply.text
    made, first = reply.json(), own.ok("GET", "/v1/checkpoints/saved")
    assert made == first | {"name": name, "created_at": made["created_at"]}
    assert own.ok("GET", f"/v1/checkpoints/{name}") == made
    assert (folder / f"{name}.checkpoint").read_bytes() == saved
    assert list(folder.glob("*.upload")) == []
    again = put(own, name, saved)
    assert (again.status_code, again.json()) == (200, made)
    assert put(own, name, iter([saved[:7], saved[7:]])).status_code == 200
    assert put(own, name, saved, repr_digest=f"sha-512=:AAAA:, {digest(saved)}").status_code == 200


def test_a_body_in_chunks_is_taken_too(own: Api, saved: bytes, name: str) -> None:
    reply = put(own, name, (saved[at : at + 100] for at in range(0, len(saved), 100)))
    assert reply.status_code == 201, reply.text
    assert own.http.get(path(name)).content == saved


def test_sent_again_with_its_key_the_reply_is_the_same(own: Api, saved: bytes, name: str) -> None:
    first = put(own, name, saved, idempotency_key=name)
    again = put(own, name, saved, idempotency_key=name)
    assert (first.status_code, again.status_code, again.content) == (201, 201, first.content)
    assert again.headers["idempotency-replayed"] == "true"
    refused(put(own, name, other(), idempotency_key=name), 422, "idempotency-mismatch")
    own.ok("DELETE", f"/v1/checkpoints/{name}")
    assert put(own, name, saved, idempotency_key=name).content == first.content
    refused(own.http.get(path(name)), 404, "checkpoint-not-found")


def other() -> bytes:
    """A file of our format, whose image is none."""
    return encode(BEFORE_FIRST, b"no image")


def bad(saved: bytes) -> list[tuple[bytes, dict[str, str], int, str, str]]:
    q = "invalid-request"
    return [
        (b"", {}, 409, "checkpoint-corrupt", "no checkpoint"),
        (b"not of this service", {}, 409, "checkpoint-corrupt", "no checkpoint"),
        (saved[:-1], {}, 409, "checkpoint-corrupt", "checksum"),
        (saved + b"0", {}, 409, "checkpoint-corrupt", "checksum"),
        (other(), {}, 409, "checkpoint-corrupt", "this version"),
        (saved, {"repr_digest": digest(saved + b"0")}, 422, q, "header.Repr-Digest"),
        (saved[:-1], {"repr_digest": digest(saved)}, 422, q, "header.Repr-Digest"),
        (saved, {"repr_digest": "sha-512=:AAAA:"}, 422, q, "header.Repr-Digest"),
        (saved, {"repr_digest": "sha-256=:AAAA:"}, 422, q, "32 bytes"),
        (saved, {"repr_digest": "sha-256=:A:"}, 422, q, "32 bytes"),
        (saved, {"repr_digest": sha256(saved).hexdigest()}, 422, q, "header.Repr-Digest"),
        (saved, {"content_type": "application/json"}, 415, "unsupported-media-type", "octet-stream"),
        (saved, {"content_encoding": "gzip"}, 415, "unsupported-media-type", "Content-Encoding"),
        (saved, {"x_epoch": "7"}, 409, "epoch-mismatch", "X-Epoch"),
        (saved, {"origin": "http://elsewhere"}, 403, "forbidden", "origin"),
        (bytes(MOST + 1), {}, 413, "body-too-large", "max_checkpoint_bytes"),
    ]


@pytest.mark.parametrize("number", range(16))
def test_what_is_refused_leaves_nothing(own: Api, saved: bytes, folder: Path, name: str, number: int) -> None:
    data, headers, status, code, word = bad(saved)[number]
    before = own.ok("GET", "/v1/server")["revision"], sorted(folder.iterdir())
    refused(put(own, name, data, **headers), status, code, word)
    assert (own.ok("GET", "/v1/server")["revision"], sorted(folder.iterdir())) == before


def test_a_body_that_grows_too_large_is_refused_while_it_streams(own: Api, folder: Path, name: str) -> None:
    refused(put(own, name, (bytes(MOST) for _ in range(9))), 413, "body-too-large", "max_checkpoint_bytes")
    assert list(folder.glob(f"{name}*")) == []


def test_a_name_that_is_taken_by_another_is_409_before_the_body_is_asked_for(
    own: Api, saved: bytes, folder: Path
) -> None:
    refused(put(own, "saved", other()), 409, "checkpoint-exists", "another checkpoint 'saved'")
    refused(put(own, "saved", other(), idempotency_key="another"), 409, "checkpoint-corrupt")
    with raw(own.url, "saved", 99, "Expect: 100-continue") as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 409")
    (folder / "foreign.checkpoint").write_bytes(saved)
    refused(put(own, "foreign", saved), 409, "checkpoint-exists", "without a note")
    assert (folder / "saved.checkpoint").read_bytes() == saved
    (folder / "foreign.checkpoint").unlink()


@pytest.mark.parametrize("bad_name", ["-a", ".hidden", "a b", "a" * 101])
def test_a_name_that_is_none_is_422(own: Api, saved: bytes, bad_name: str, folder: Path) -> None:
    before = sorted(folder.iterdir())
    refused(put(own, bad_name, saved), 422, "invalid-request", "path.name")
    refused(own.http.get(path(bad_name)), 422, "invalid-request", "path.name")
    refused(own.http.put(f"{path('a')}?force=1", content=saved), 422, "invalid-request", "query.force")
    assert sorted(folder.iterdir()) == before


def raw(server: str, name: str, length: int, *headers: str) -> socket.socket:
    """A connection on which the head of a PUT was sent."""
    url = urlsplit(server)
    assert url.hostname
    lines = [f"PUT {path(name)} HTTP/1.1", f"Host: {url.netloc}", f"Content-Length: {length}", *headers, "", ""]
    connection = socket.create_connection((url.hostname, url.port or 80), timeout=60)
    connection.sendall("\r\n".join(lines).encode())
    return connection


def uploads(folder: Path, name: str) -> list[Path]:
    return list(folder.glob(f"{name}.*.upload"))


def wait_for(folder: Path, name: str, count: int) -> None:
    """Until the server has so many files of this name on their way."""
    assert wait_until(lambda: len(uploads(folder, name)) == count, 60)


def test_who_leaves_in_the_middle_leaves_nothing(own: Api, saved: bytes, folder: Path, name: str) -> None:
    for leave in (socket.socket.close, lambda connection: connection.shutdown(socket.SHUT_WR)):
        connection = raw(own.url, name, len(saved))
        connection.sendall(saved[:50])
        wait_for(folder, name, 1)
        leave(connection)
        wait_for(folder, name, 0)
        connection.close()
    assert list(folder.glob(f"{name}*")) == []
    assert own.http.get("/readyz").status_code == 200


def test_two_that_send_the_same_at_once_get_the_same(own: Api, saved: bytes, folder: Path, name: str) -> None:
    slow = raw(own.url, name, len(saved), "Connection: close")
    slow.sendall(saved[:50])
    wait_for(folder, name, 1)
    first = put(own, name, saved)
    slow.sendall(saved[50:])
    said = b""
    while part := slow.recv(65_536):
        said += part
    slow.close()
    assert (first.status_code, said[:12]) == (201, b"HTTP/1.1 200")
    assert json.loads(said.partition(b"\r\n\r\n")[2]) == first.json()
