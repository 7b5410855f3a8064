"""Every route of the service, asked in each way that HTTP allows or forbids: HEAD, other methods, headers that stand
twice, codings, an absolute target, a client that closes its sending side. The rows come from the routes themselves, so
that a new one is in the table. Over sockets, for half of it is decided before any route.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest

from app.contract import Operation
from app.routes import ALL
from tests.conftest import ServerProcess

from .conftest import fill
from .service import Api, exchange, head, last_words, refused

ASKED = {"fields": "ids"}  # what a query needs
METHODS = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"]
NAMES = {"task": "t", "claim_id": "c1", "clear_id": "x1", "worker": "w", "name": "c"}
OPERATIONS = [operation for routes in ALL for operation in routes.operations]
PAGES = ["/docs", "/openapi.json", "/static/docs.js"]


@dataclass(frozen=True)
class Row:
    """One method of one path, with a request that the route takes."""

    method: str
    path: str
    body: bytes

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def request(self, *headers: str, target: str = "", host: str = "localhost") -> bytes:
        framing = [f"Content-Length: {len(self.body)}", "Content-Type: application/json"] if self.body else []
        return head(self.method, f"{target}{self.path}", *framing, *headers, host=host) + self.body

    def chunked(self, coding: str) -> bytes:
        """With the body in a chunk, and a Transfer-Encoding."""
        body = b"%x\r\n%s\r\n" % (len(self.body), self.body) if self.body else b""
        lines = [f"Transfer-Encoding: {coding}", "Content-Type: application/json"]
        return head(self.method, self.path, *lines) + body + b"0\r\n\r\n"


def row(operation: Operation) -> Row:
    """The OpenAPI's example, in the partition `edge`."""
    path = operation.path.format(partition_id="edge", **NAMES)
    if operation.method in ("GET", "DELETE"):
        query = [
            f"{field.name}={ASKED[field.name]}" for field in msgspec.structs.fields(operation.takes) if field.required
        ]
        return Row(operation.method, path + ("?" + "&".join(query) if query else ""), b"")
    return Row(operation.method, path, json.dumps(operation.example or {}).encode())


ROWS = [row(operation) for operation in OPERATIONS]
PAGE_ROWS = [Row("GET", path, b"") for path in PAGES]
every = pytest.mark.parametrize("asked", ROWS, ids=str)
every_and_pages = pytest.mark.parametrize("asked", [*ROWS, *PAGE_ROWS], ids=str)
readable = pytest.mark.parametrize("asked", [row for row in [*ROWS, *PAGE_ROWS] if row.method == "GET"], ids=str)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One server for the file, with the partition `edge`; its log holds no traceback."""
    folder = tmp_path_factory.mktemp("checkpoints")
    process = ServerProcess("--journal", "memory:", "--checkpoints", str(folder))
    yield process.url
    process.process.terminate()
    errors = process.process.communicate(timeout=60)[1]
    assert "Traceback" not in errors, errors


@pytest.fixture(scope="module")
def edge(server: str) -> Iterator[Api]:
    """The partition that no call of the table changes."""
    api = Api(server)
    api.name, api.path = "edge", "/v1/partitions/edge"
    with api.http:
        yield fill(api)


def revision(edge: Api) -> int:
    """It rises with every change of the service."""
    number: int = edge.ok("GET", "/v1/server")["revision"]
    return number


def steady(reply: Any) -> dict[str, str]:
    """The headers that do not name the one request."""
    return {name: value for name, value in reply.headers.items() if name != "x-request-id"}


@readable
def test_a_head_is_as_its_get_without_the_body(edge: Api, asked: Row) -> None:
    got = exchange(edge.url, asked.request("X-Request-ID: one"))
    also = exchange(edge.url, Row("HEAD", asked.path, b"").request("X-Request-ID: one"))
    assert (also.status_code, steady(also)) == (got.status_code, steady(got))
    assert int(also.headers["content-length"]) == len(got.content)
    assert also.headers["x-request-id"] == "one"


@readable
def test_a_tag_that_is_known_is_told_in_the_same_way(edge: Api, asked: Row) -> None:
    tag = exchange(edge.url, asked.request()).headers.get("etag", '"none"')
    for header in (tag, f'"other", W/{tag}', "*"):
        line = f"If-None-Match: {header}"
        got = exchange(edge.url, asked.request(line))
        also = exchange(edge.url, Row("HEAD", asked.path, b"").request(line))
        assert (also.status_code, steady(also)) == (got.status_code, steady(got))
        assert got.status_code != 304 or "content-length" not in got.headers
    several = exchange(edge.url, asked.request(f"If-None-Match: {tag}", 'If-None-Match: "other"'))
    assert several.status_code == exchange(edge.url, asked.request(f"If-None-Match: {tag}")).status_code


@pytest.mark.parametrize("path", sorted({row.path.partition("?")[0] for row in [*ROWS, *PAGE_ROWS]}))
def test_every_other_method_is_405_and_allow_names_those_there_are(edge: Api, path: str) -> None:
    there = {row.method for row in [*ROWS, *PAGE_ROWS] if row.path.partition("?")[0] == path}
    there |= {"HEAD"} if "GET" in there else set()
    for method in sorted(set(METHODS) - there):
        reply = exchange(edge.url, head(method, path, "Content-Length: 0"))
        assert (reply.status_code, reply.headers["allow"]) == (405, ", ".join(sorted(there)))


@every_and_pages
def test_two_hosts_or_none_are_400(edge: Api, asked: Row) -> None:
    before = revision(edge)
    refused(exchange(edge.url, asked.request("Host: localhost")), 400, "bad-request", "Host", "twice")
    without = asked.request().replace(b"Host: localhost\r\n", b"", 1)
    refused(exchange(edge.url, without), 400, "bad-request", "Host", "missing")
    assert revision(edge) == before


@every_and_pages
def test_the_host_of_an_absolute_target_counts(edge: Api, asked: Row) -> None:
    before = revision(edge)
    evil = exchange(edge.url, asked.request(target="http://evil.example"))
    refused(evil, 403, "forbidden", "evil.example", "--allowed-hosts")
    refused(exchange(edge.url, asked.request(target="http://localhost@evil.example:80")), 403, "forbidden", "evil")
    assert revision(edge) == before
    ours = Row("GET", asked.path if asked.method == "GET" else "/healthz", b"")
    assert steady(exchange(edge.url, ours.request(target="http://localhost:1", host="evil.example"))) == steady(
        exchange(edge.url, ours.request())
    )


ONCE = ["X-Epoch: 1", "Content-Type: application/json", "Origin: http://localhost", "Sec-Fetch-Site: none"]
ONCE += ["Idempotency-Key: k"]


@every_and_pages
@pytest.mark.parametrize("line", ONCE, ids=lambda line: line.partition(":")[0])
def test_what_has_one_value_may_stand_once(edge: Api, asked: Row, line: str) -> None:
    before = revision(edge)
    reply = exchange(edge.url, asked.request(line, line))
    refused(reply, 422, "invalid-request", line.partition(":")[0], "twice")
    assert revision(edge) == before


@every
def test_lines_of_accept_are_one_list(edge: Api, asked: Row) -> None:
    before = revision(edge)
    refused(exchange(edge.url, asked.request("Accept: text/html", "Accept: image/*")), 406, "not-acceptable")
    assert revision(edge) == before
    if asked.method == "GET":
        offered = "application/octet-stream" if asked.path.endswith("/content") else "application/json"
        reply = exchange(edge.url, asked.request(f"Accept: {offered}", "Accept: text/html"))
        assert reply.status_code == exchange(edge.url, asked.request()).status_code != 406


@every
def test_a_packed_body_is_415_and_the_coding_is_named(edge: Api, asked: Row) -> None:
    before = revision(edge)
    for coding in ("gzip", "identity, br", "x"):
        reply = exchange(edge.url, asked.request(f"Content-Encoding: {coding}"))
        refused(reply, 415, "unsupported-media-type", "header Content-Encoding")
    reply = exchange(edge.url, asked.chunked("gzip, chunked"))
    refused(reply, 415, "unsupported-media-type", "header Transfer-Encoding")
    assert revision(edge) == before


@every_and_pages
def test_who_closes_its_sending_side_is_answered_and_then_closed(server: str, asked: Row) -> None:
    elsewhere = replace(asked, path=asked.path.replace("/edge", "/half"))
    for request in (elsewhere.request(), elsewhere.chunked("chunked")):
        (reply,) = last_words(server, request)
        assert reply.status_code < 500
        assert reply.headers["x-request-id"]
