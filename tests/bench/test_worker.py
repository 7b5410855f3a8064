"""The client that measures: a call that fails is told, and not sent again until it looks merely slow."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from batchmeta import Problem
from bench.worker import Worker

READY = b'{"status":"ready"}'
REFUSED = b"""{"type": "urn:batchmeta:problem:not-ready", "title": "Not ready", "status": 503, "detail": "later",
"code": "not-ready", "retryable": true, "request_id": "1"}"""


class Failing(BaseHTTPRequestHandler):
    """Ready, but every change is refused for now."""

    protocol_version = "HTTP/1.1"
    changes = 0

    def do_GET(self) -> None:
        self._answer(200, READY)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        type(self).changes += 1
        self._answer(503, REFUSED)

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/problem+json" if status >= 400 else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Failing) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_call_that_fails_fails_the_measurement(url: str) -> None:
    worker = Worker(url)
    before = Failing.changes
    with pytest.raises(Problem):
        worker.put_times("p", [{"field_schema": {"a": {"dtype": "int64"}}}], "k", 3)
    assert Failing.changes == before + 1
    worker.run(worker.client.aclose())
    worker.runner.close()
