"""What a connection owes its client, below any route: whole requests are answered whatever follows them, bytes that are
no HTTP get a problem as everything else does, and a client that closes its sending side is not one that left.
"""

import json
import socket

import httpx
import pytest

from .service import Api, answer, connect, exchange, head, last_words, post, refused
from .test_waiting import waiting_claim

JSON = "Content-Type: application/json"
JUNK = {
    "no-method": b"nonsense\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
    "length": head("GET", "/v1/server", "Content-Length: x"),
    "two-lengths": head("POST", "/v1/partitions/p/samples", JSON, "Content-Length: 2", "Content-Length: 3") + b"{}",
    "both-framings": head("POST", "/v1/partitions/p/samples", "Content-Length: 2", "Transfer-Encoding: chunked"),
    "chunk": head("POST", "/v1/partitions/p/samples", JSON, "Transfer-Encoding: chunked") + b"zz\r\n",
    "coding-alone": head("POST", "/v1/partitions/p/samples", JSON, "Transfer-Encoding: gzip"),
    "header": head("GET", "/v1/server", "no colon"),
    "target": head("GET", "no-slash"),
    "raw-target": head("GET", "/\xe9"),
    "connect": head("CONNECT", "localhost:1"),
    "version": head("GET", "/v1/server").replace(b"HTTP/1.1", b"HTTP/9.9"),
}


@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK)
def test_bytes_that_are_no_http_are_a_problem_and_the_next_connection_works(api: Api, junk: bytes) -> None:
    with connect(api.url) as connection:
        connection.sendall(junk)
        reply = answer(connection)
        refused(reply, 400, "bad-request", "HTTP/1.1", "TLS")
        assert (reply.headers["connection"], reply.headers["x-epoch"]) == ("close", "1")
        assert connection.recv(1) == b""
    assert api.ok("GET", "/v1/server")["name"] == "batchmeta"


def test_the_callers_request_id_is_kept_where_it_could_be_read(api: Api) -> None:
    reply = exchange(api.url, head("GET", "/v1/server", "X-Request-ID: mine", "Content-Length: x"))
    assert refused(reply, 400, "bad-request")["request_id"] == "mine"


def all_of(api: Api, request: bytes) -> list[httpx.Response]:
    """Every reply to these bytes, where the server ends the connection by itself."""
    with connect(api.url) as connection:
        connection.sendall(request)
        replies = [answer(connection)]
        assert connection.recv(1) == b""
    return replies


@pytest.mark.parametrize("junk", [b"junk\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n"])
def test_a_call_that_came_whole_is_answered_before_the_junk_behind_it(api: Api, junk: bytes) -> None:
    (reply,) = all_of(api, post(f"{api.path}/samples", b'{"count": 1}') + junk)
    assert (reply.status_code, reply.headers["connection"]) == (201, "close")
    assert api.ok("GET", "")["num_samples"] == 1


def test_whoever_closes_its_sending_side_gets_the_answers_to_all_that_came_whole(api: Api) -> None:
    insert = post(f"{api.path}/samples", b'{"count": 1}')
    assert [reply.status_code for reply in last_words(api.url, insert * 3)] == [201] * 3
    for part in (insert[:20], insert[:-1]):
        assert [reply.status_code for reply in last_words(api.url, insert + part)] == [201]
        assert last_words(api.url, part) == []
    assert api.ok("GET", "")["num_samples"] == 5


def test_a_batch_that_is_ready_is_handed_to_one_who_would_wait_with_its_sending_side_closed(api: Api) -> None:
    api.produce(["a"], "n")
    (reply,) = last_words(api.url, waiting_claim(api))
    assert (reply.status_code, reply.json()["batch"]["keys"]) == (201, ["a"])


def test_nobody_waits_with_its_sending_side_closed(api: Api) -> None:
    revision = api.produce(["a"], "n")["revision"]
    api.claim("n")
    waits = [
        waiting_claim(api),
        *(head("GET", f"{api.path}{query}") for query in ("?revision={}", "/keys?since_revision={}")),
    ]
    for wait in waits:
        request = wait.replace(b"{}", b"%d&wait_s=60" % (revision + 1))
        claim, after = last_words(api.url, request + head("GET", "/healthz"))
        refused(claim, 422, "invalid-request", "connection", "sending side")
        assert after.status_code == 200
    api.produce(["b"], "n")
    assert api.ok("GET", "tasks/t/consumption")["consumed"] == 1


def test_a_key_of_a_wait_that_ended_so_can_be_used_again(api: Api) -> None:
    api.insert("a")
    request = waiting_claim(api).replace(b"\r\n\r\n", b"\r\nIdempotency-Key: half\r\n\r\n", 1)
    refused(last_words(api.url, request)[0], 422, "invalid-request", "connection")
    api.produce(["a"], "n")
    assert [reply.status_code for reply in last_words(api.url, request * 2)] == [201] * 2


def test_a_head_waits_as_its_get_does(api: Api) -> None:
    revision = api.produce(["a"], "n")["revision"]
    with connect(api.url) as connection:
        connection.sendall(head("HEAD", f"{api.path}?revision={revision}&wait_s=60"))
        api.produce(["b"], "n")
        reply = answer(connection, has_body=False)
        now = api.send("GET", "")
        assert (reply.status_code, reply.headers["etag"]) == (200, now.headers["etag"])
        assert reply.headers["content-length"] == now.headers["content-length"]
        connection.sendall(head("GET", "/healthz"))
        assert answer(connection).json() == {"status": "ok"}


UPGRADE = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")


def test_an_upgrade_is_not_made_and_the_connection_ends_with_the_answer(api: Api) -> None:
    (reply,) = all_of(api, head("GET", "/healthz", *UPGRADE) + head("GET", "/healthz"))
    assert (reply.status_code, reply.headers["connection"]) == (200, "close")


@pytest.mark.parametrize("framing", ["Content-Length: 23", "Transfer-Encoding: chunked"])
def test_a_body_with_an_upgrade_is_refused_and_not_taken_for_none(api: Api, framing: str) -> None:
    body = json.dumps({"expected_samples": 2}).encode()
    body = b"17\r\n" + body + b"\r\n0\r\n\r\n" if framing.startswith("T") else body
    (reply,) = all_of(api, head("PUT", api.path, JSON, framing, *UPGRADE) + body)
    refused(reply, 400, "bad-request", "Upgrade")
    refused(api.send("GET", ""), 404, "partition-not-found")


def test_who_speaks_http_1_0_is_told_nothing_before_the_answer(api: Api) -> None:
    request = post(f"{api.path}/samples", b'{"count": 1}').replace(b"HTTP/1.1", b"HTTP/1.0")
    request = request.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n")
    assert exchange(api.url, request).status_code == 201


def test_a_target_may_be_absolute_without_a_path(api: Api) -> None:
    for target in ("http://localhost", "HTTP://LOCALHOST:80?x=1"):
        refused(exchange(api.url, head("GET", target, host="evil.example")), 404, "route-not-found", "route /:")
    refused(exchange(api.url, head("GET", "http:///healthz")), 403, "forbidden")


def test_a_change_from_a_page_is_judged_by_the_host_of_the_target(api: Api) -> None:
    request = head(
        "PUT", f"http://localhost{api.path}", "Origin: http://evil.example", "Content-Length: 0", host="evil.example"
    )
    refused(exchange(api.url, request), 403, "forbidden", "origin")


def test_a_client_that_shuts_both_sides_down_is_no_fault(api: Api) -> None:
    with connect(api.url) as connection:
        connection.sendall(head("GET", "/healthz"))
        connection.shutdown(socket.SHUT_RDWR)
    assert api.ok("GET", "/healthz") == {"status": "ok"}


def test_a_body_that_is_waited_for_is_asked_for_once_the_headers_are_accepted(api: Api) -> None:
    request = post(f"{api.path}/samples", b'{"count": 1}').replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n")
    top, _, body = request.partition(b"\r\n\r\n")
    with connect(api.url) as connection:
        connection.sendall(top + b"\r\n\r\n")
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert answer(connection).status_code == 201


def test_a_body_that_would_be_refused_is_not_asked_for(api: Api) -> None:
    with connect(api.url) as connection:
        lines = ("Expect: 100-continue", "Content-Length: 12", "Accept: text/html")
        connection.sendall(head("POST", f"{api.path}/samples", JSON, *lines))
        refused(answer(connection), 406, "not-acceptable")


def test_thousands_of_requests_in_one_piece_are_answered_in_their_order(api: Api) -> None:
    """Those that need no engine too, one of which could otherwise start the next before it is over."""
    some = head("GET", "/healthz") + head("GET", f"{api.path}/none") + post(f"{api.path}/samples", b'{"count": 1}')
    replies = last_words(api.url, some * 700)
    assert [reply.status_code for reply in replies] == [200, 404, 201] * 700
    assert [reply.json()["global_indexes"] for reply in replies[2::3]] == sorted(
        reply.json()["global_indexes"] for reply in replies[2::3]
    )


def test_a_large_body_behind_a_call_that_waits_arrives_whole(api: Api) -> None:
    api.insert("a")
    rows = json.dumps({"keys": [f"{number:0200}" for number in range(3000)]}).encode()
    with connect(api.url) as connection:
        connection.sendall(waiting_claim(api) + post(f"{api.path}/samples", rows)[:-1])
        api.produce(["a"], "n")
        assert answer(connection).json()["batch"]["keys"] == ["a"]
        connection.sendall(rows[-1:])
        assert answer(connection).status_code == 201
    assert api.ok("GET", "")["num_samples"] == 3001


def test_replies_that_a_slow_reader_has_to_wait_for_come_whole_and_in_order(api: Api) -> None:
    keys = [f"{number:0500}" for number in range(2000)]
    api.ok("POST", "samples", {"keys": keys})
    calls = [head("GET", f"{api.path}/batch-meta?limit={limit}") for limit in range(1990, 2000)]
    replies = last_words(api.url, b"".join(calls))
    assert [reply.json()["keys"] for reply in replies] == [keys[:limit] for limit in range(1990, 2000)]
