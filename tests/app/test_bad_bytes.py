"""Every malformed call gets the contract's problem with a detail that says what to change, changes nothing, and the
next call works. Here: bytes that are not JSON or not UTF-8, bodies too long, connections cut, foreign pages and hosts.
"""

import gzip
from collections.abc import Iterator

import pytest

from tests.conftest import DEADLINE_S, ServerProcess

from .service import Api, answer, connect, exchange, head, post, refused

Q = "invalid-request"
JSON = ("Content-Type: application/json",)
BODIES = [
    (b"{", "JSON"),
    (b'{"count": 1', "JSON"),
    (b'{"count": 1} 2', "JSON"),
    (b"{'count': 1}", "JSON"),
    (b'{"count": NaN}', "JSON"),
    (b'{"count": 1e999}', "body.count"),
    (b'{"count": 99999999999999999999999}', "body.count"),
    (b'\xef\xbb\xbf{"count": 1}', "JSON"),
    ('{"keys": ["z"]}'.encode("utf-16"), "JSON"),
    (b'{"keys": ["\xff"]}', "UTF-8"),
    (b'{"keys": ["\\ud800"]}', "JSON"),
    (b'{"keys": ["z"], "custom_meta": [{"a": "\xff"}]}', "custom_meta[0]"),
    (b'{"keys": ["z"], "custom_meta": [{"a": "\xed\xa0\x80"}]}', "custom_meta[0]"),
    (b'{"keys": ["z"], "custom_meta": [{"\\udc00": 1}]}', "JSON"),
    (b'{"keys": ["z"], "custom_meta": [{"a": 1e999}]}', "custom_meta[0]"),
    (b'{"keys": ["z"], "custom_meta": [{"a": NaN}]}', "JSON"),
    (b'{"keys": ["z"], "custom_meta": {"const": {"a": -1e999}}}', "custom_meta.const"),
    (b'{"keys": ["z"], "custom_meta": [{"a": %s1%s}]}' % (b"[" * 900, b"]" * 900), "deep"),
    (b'{"keys": ["z"], "custom_meta": [{"a": %s1%s}]}' % (b"[" * 100_000, b"]" * 100_000), "deep"),
    (b'{"keys": ["z"], "custom_meta": [%s1%s]}' % (b'{"a":' * 100_000, b"}" * 100_000), "deep"),
    (b"[" * 100_000 + b"]" * 100_000, "body"),
    (b'{"surprise": %s1%s}' % (b"[" * 100_000, b"]" * 100_000), "surprise"),
    (b'{"keys": %s"z"%s}' % (b"[" * 100_000, b"]" * 100_000), "body.keys"),
]


@pytest.mark.parametrize(("body", "word"), BODIES, ids=lambda part: repr(part)[:50])
def test_a_body_that_no_reader_could_read_is_refused(filled: Api, body: bytes, word: str) -> None:
    before = filled.dump()
    refused(exchange(filled.url, post(f"{filled.path}/samples", body)), 422, Q, word)
    assert filled.dump() == before


def test_what_a_refused_key_had_held_is_not_in_the_way_of_a_good_one(filled: Api) -> None:
    refused(exchange(filled.url, post(f"{filled.path}/samples", b'{"keys": ["z"], "custom_meta": [1]}')), 422, Q)
    assert len(filled.insert("z")) == 1


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "application/xml", ""])
def test_a_body_that_is_not_json_by_its_type_is_refused(filled: Api, content_type: str) -> None:
    before = filled.dump()
    reply = exchange(filled.url, post(f"{filled.path}/samples", b'{"count": 1}', content_type))
    refused(reply, 415, "unsupported-media-type", "curl --json")
    assert filled.dump() == before


@pytest.mark.parametrize(
    "body", [gzip.compress(b'{"count": 1}'), b'{"count": 1}', b""], ids=["packed", "plain", "none"]
)
@pytest.mark.parametrize("coding", ["gzip", "GZIP", "br", "identity, gzip", "gzip, identity"])
def test_a_body_with_a_content_coding_is_refused_by_its_name(filled: Api, body: bytes, coding: str) -> None:
    before = filled.dump()
    lines = (*JSON, f"Content-Encoding: {coding}", f"Content-Length: {len(body)}")
    reply = exchange(filled.url, head("POST", f"{filled.path}/samples", *lines) + body)
    refused(reply, 415, "unsupported-media-type", "header Content-Encoding", "identity")
    assert filled.dump() == before


@pytest.mark.parametrize("coding", ["identity", "Identity"])
def test_identity_is_no_coding(filled: Api, coding: str) -> None:
    headers = {"Content-Encoding": coding}
    assert filled.send("POST", "samples", {"count": 1}, headers=headers).status_code == 201


def test_no_body_needs_no_type_and_means_no_members(api: Api) -> None:
    assert exchange(api.url, post(api.path + "/consumption/reset", b"", "text/plain")).status_code == 404
    assert exchange(api.url, head("PUT", api.path, "Content-Length: 0")).status_code == 201


ADDRESSES = ["a%2Fb", "a%2fb", "a%5Cb", "%2e%2e", "%2E", "a%00b", "a%0Ab", "%ED%A0%80", "%FF", "n" * 201, "a%7F"]


@pytest.mark.parametrize("name", ADDRESSES, ids=lambda name: name[:20])
def test_a_name_that_hides_something_is_refused(filled: Api, name: str) -> None:
    before = filled.dump()
    for path in (f"/v1/partitions/{name}/samples", f"{filled.path}/tasks/{name}/claims"):
        body = b'{"count": 1}' if path.endswith("samples") else b'{"fields": ["ids"], "batch_size": 1}'
        refused(exchange(filled.url, post(path, body)), 422, Q, "path")
    assert filled.dump() == before


def test_a_query_that_is_no_utf8_is_refused(filled: Api) -> None:
    refused(exchange(filled.url, head("GET", f"{filled.path}/keys?prefix=%FF")), 422, Q, "query", "UTF-8")


@pytest.mark.parametrize(
    "header", ["Origin: http://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site"], ids=lambda h: h[:20]
)
def test_a_page_of_another_origin_changes_nothing_and_may_not_ask(filled: Api, header: str) -> None:
    before = filled.dump()
    for method, path in (("POST", "/samples"), ("PUT", ""), ("DELETE", ""), ("PATCH", "/custom-meta")):
        reply = exchange(filled.url, head(method, filled.path + path, header, "Content-Length: 0"))
        refused(reply, 403, "forbidden", "origin")
        assert "access-control-allow-origin" not in reply.headers
    assert filled.dump() == before


def test_a_page_of_our_own_may_change_things(filled: Api) -> None:
    host = filled.url.removeprefix("http://")
    reply = filled.send("POST", "samples", {"count": 1}, headers={"Origin": f"http://{host}"})
    assert reply.status_code == 201


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8700", "localhost.evil.example", "[::1", ""])
def test_a_host_that_we_are_not_is_refused_also_on_reads(filled: Api, host: str) -> None:
    refused(exchange(filled.url, head("GET", "/v1/server", host=host)), 403, "forbidden", "--allowed-hosts")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8700"])
def test_loopback_names_are_ours_with_any_port(filled: Api, host: str) -> None:
    assert exchange(filled.url, head("GET", "/v1/server", host=host)).status_code == 200


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


@pytest.fixture(scope="module")
def small() -> Iterator[str]:
    """A server that takes small bodies; whatever the tests do to it, its log holds no traceback."""
    server = ServerProcess("--journal", "memory:", "--max-body-bytes", "100000")
    yield server.url
    server.process.terminate()
    errors = server.process.communicate(timeout=DEADLINE_S)[1]
    assert "Traceback" not in errors, errors


def test_a_body_over_the_limit_is_refused_while_it_streams(small: str) -> None:
    with connect(small) as connection:
        connection.sendall(head("POST", "/v1/partitions/p/samples", *JSON, "Transfer-Encoding: chunked"))
        connection.sendall(chunk(b'{"keys": ["') + chunk(b"k" * 100_000))
        problem = refused(answer(connection), 413, "body-too-large", "100000", "max_body_bytes")
        assert problem["retryable"] is False
    with connect(small) as connection:
        connection.sendall(head("POST", "/v1/partitions/p/samples", *JSON, "Content-Length: 100001"))
        refused(answer(connection), 413, "body-too-large")
    assert exchange(small, head("GET", "/v1/partitions/p")).status_code == 404
    body = b'{"count": 1' + b" " * 99_988 + b"}"
    assert exchange(small, post("/v1/partitions/p/samples", body)).status_code == 201


@pytest.mark.parametrize("framing", ["Content-Length: 50", "Transfer-Encoding: chunked"])
def test_a_connection_cut_in_mid_body_changes_nothing(small: str, framing: str) -> None:
    with connect(small) as connection:
        body = chunk(b'{"count": 1}') if framing.startswith("T") else b'{"count": 1}'
        connection.sendall(head("POST", "/v1/partitions/cut/samples", *JSON, framing) + body)
    assert exchange(small, head("GET", "/v1/partitions/cut")).status_code == 404
