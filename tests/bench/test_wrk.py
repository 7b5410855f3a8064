"""The real wrk with our scripts against a server that keeps what it gets: keys differ, wrong replies are counted."""

import json
import os
import shutil
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from bench import wrk


class Listening(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "Stub"

    def do_POST(self) -> None:
        self.server.got.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.reply)))
        self.end_headers()
        self.wfile.write(self.server.reply)

    def log_message(self, *_: object) -> None:
        pass


class Stub(ThreadingHTTPServer):
    daemon_threads = True
    got: list[tuple[str, Any]]
    status, reply = 200, b"{}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Wrk has left, as it does at the end of a run."""


@pytest.fixture
def stub() -> Iterator[Stub]:
    if shutil.which("wrk") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("wrk is not on PATH: apt-get install wrk")
        pytest.skip("wrk is not on PATH: apt-get install wrk")
    with Stub(("127.0.0.1", 0), Listening) as server:
        server.got = []
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server
        server.shutdown()


def load(stub: Stub, script: str, body: Path, *more: object) -> dict[str, Any]:
    return wrk.load(script, f"http://127.0.0.1:{stub.server_port}", 1, 2, "/v1/x", body, *more)


def test_every_put_has_a_key_of_its_own(stub: Stub, tmp_path: Path) -> None:
    body = tmp_path / "put.json"
    body.write_text('{"keys":["@KEY@"],"n":1}')
    done = load(stub, "put", body, "50%_k")
    keys = [sent["keys"][0] for path, sent in stub.got if path == "/v1/x"]
    assert len(set(keys)) == len(stub.got) >= done["requests"] > 0
    assert keys[0].startswith("50%_k_")
    assert done["p50_ms"] <= done["p99_ms"]


def test_a_status_that_is_no_success_is_counted(stub: Stub, tmp_path: Path) -> None:
    body = tmp_path / "put.json"
    body.write_text('{"keys":["@KEY@"]}')
    stub.status = 409
    with pytest.raises(wrk.WrkFailed, match=r"^wrk put: (\d+) wrong of \1 replies$"):
        load(stub, "put", body, "k")


def test_a_claim_with_too_few_rows_is_counted(stub: Stub, tmp_path: Path) -> None:
    body = tmp_path / "claim.json"
    body.write_text('{"batch_size": 8}')
    stub.status, stub.reply = 201, b'{"size":8,"is_ready":true}'
    assert load(stub, "post", body, 201, '"size":8,')["requests"] > 0
    stub.reply = b'{"size":7,"is_ready":true}'
    with pytest.raises(wrk.WrkFailed, match=r"^wrk post: (\d+) wrong of \1 replies$"):
        load(stub, "post", body, 201, '"size":8,')
    stub.status, stub.reply = 200, b'{"size":8,"is_ready":true}'
    with pytest.raises(wrk.WrkFailed):
        load(stub, "post", body, 201, '"size":8,')
