"""How these tests speak to a real server: JSON calls over httpx, bytes over a socket, and a dump of what a client sees.

`refused` holds every problem to the contract's form.
"""

import itertools
import socket
from typing import Any
from urllib.parse import urlsplit

import httpx

from batchmeta.wire import PROBLEMS
from tests.conftest import NO_TLS

Json = Any
_names = itertools.count()


class Api:
    """One server, and a partition name that no other test uses."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.http = httpx.Client(base_url=url, timeout=30, verify=NO_TLS)
        self.name = f"p{next(_names)}"
        self.path = f"/v1/partitions/{self.name}"

    def send(self, method: str, path: str, body: Json = None, **options: Any) -> httpx.Response:
        """`path` after the partition's own, unless it starts with a slash of its own: `samples`, `/v1/server`."""
        if body is not None:
            options["json"] = body
        target = path if path.startswith("/") else f"{self.path}{path if path[:1] in ('', '?') else f'/{path}'}"
        return self.http.request(method, target, **options)

    def ok(self, method: str, path: str, body: Json = None, **options: Any) -> Json:
        """The JSON of a 2xx reply."""
        reply = self.send(method, path, body, **options)
        assert reply.is_success, reply.text
        return reply.json()

    def insert(self, *keys: str, **more: Json) -> list[int]:
        """Rows of these keys; their indexes."""
        indexes: list[int] = self.ok("POST", "samples", {"keys": list(keys), **more})["global_indexes"]
        return indexes

    def produce(self, keys: list[str], *fields: str, **more: Json) -> Json:
        """Scalar int64 fields of these keys, made if need be."""
        schema = {field: {"dtype": "int64", "shape": []} for field in fields}
        return self.ok("POST", "production", {"keys": keys, "create": True, "field_schema": schema, **more})

    def claim(self, *fields: str, task: str = "t", size: int = 1, **more: Json) -> httpx.Response:
        """A claim of `size` rows."""
        return self.send("POST", f"tasks/{task}/claims", {"fields": list(fields), "batch_size": size, **more})

    def dump(self) -> Json:
        """All that a client can see of the partition, and the service's revision."""
        include = "keys,group_ids,field_schema,custom_meta,backend_meta,field_status"
        parts = ["", f"batch-meta?include={include}&expand=true", "keys", "tasks/t/consumption"]
        revision = self.ok("GET", "/v1/server")["revision"]
        listed = self.ok("GET", "/v1/partitions?limit=10000")["partitions"]
        return [revision, listed, *(self.send("GET", part).json() | {"request_id": 0} for part in parts)]


def refused(reply: httpx.Response, status: int, code: str, *words: str) -> Json:
    """The problem, checked in every member; `words` stand in its detail."""
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.headers["cache-control"] == "no-store"
    problem = reply.json()
    kind = PROBLEMS[code]
    fixed = {key: problem[key] for key in ("type", "title", "status", "code", "retryable")}
    assert fixed == {
        "type": f"urn:batchmeta:problem:{code}",
        "title": kind.title,
        "status": status,
        "code": code,
        "retryable": kind.retryable,
    }
    assert problem["request_id"] == reply.headers["x-request-id"]
    assert all(word in problem["detail"] for word in words), (words, problem["detail"])
    return problem


def connect(url: str) -> socket.socket:
    """A connection of our own to the server."""
    address = urlsplit(url)
    return socket.create_connection((address.hostname or "", address.port or 0), timeout=30)


def head(method: str, path: str, *headers: str, host: str = "localhost") -> bytes:
    """The head of a request; without a length unless one is given."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {host}", *headers, "", ""]).encode("latin-1")


def post(path: str, body: bytes, content_type: str = "application/json") -> bytes:
    """A whole POST."""
    return head("POST", path, f"Content-Type: {content_type}", f"Content-Length: {len(body)}") + body


def answer(connection: socket.socket, has_body: bool = True) -> httpx.Response:
    """The next reply on a connection, one to a HEAD without a body; what came with it of a later one is dropped."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _more(connection)
    status, headers, rest = _top(data)
    length = int(headers.get("content-length", "0")) if has_body else 0
    while len(rest) < length:
        rest += _more(connection)
    return httpx.Response(status, headers=headers, content=rest[:length])


def _top(data: bytes) -> tuple[int, httpx.Headers, bytes]:
    """Status, headers and what follows them."""
    top, _, rest = data.partition(b"\r\n\r\n")
    first, *lines = top.decode("latin-1").split("\r\n")
    return int(first.split()[1]), httpx.Headers([tuple(line.split(": ", 1)) for line in lines]), rest  # type: ignore[misc]


def _more(connection: socket.socket) -> bytes:
    got = connection.recv(65_536)
    assert got, "the server closed the connection without a whole reply"
    return got


def exchange(url: str, request: bytes) -> httpx.Response:
    """Bytes out, one reply in, on a connection of its own."""
    with connect(url) as connection:
        connection.sendall(request)
        return answer(connection, has_body=not request.startswith(b"HEAD "))


def last_words(url: str, request: bytes) -> list[httpx.Response]:
    """All replies to a client that closes its sending side after these bytes, until the server closes too."""
    with connect(url) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        data = b"".join(iter(lambda: connection.recv(65_536), b""))
    replies = []
    while data:
        status, headers, data = _top(data)
        length = 0 if request.startswith(b"HEAD ") else int(headers.get("content-length", "0"))
        replies.append(httpx.Response(status, headers=headers, content=data[:length]))
        data = data[length:]
    return replies
