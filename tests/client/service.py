"""Stand-ins for the service: one that answers from a script, and one on a loopback port that counts its connections."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

from batchmeta import AsyncClient, Retries
from batchmeta.wire import PROBLEMS

Answer = httpx.Response | Exception


class Scripted:
    """Gives the answers in turn and keeps the requests; the last answer is given for ever."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.requests]


class Clock:
    """A clock that only its own sleep moves, and that keeps the pauses."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def retries(self, most: int | None = None, within_s: float = 60.0) -> Retries:
        return Retries(most=most, within_s=within_s, clock=lambda: self.now, random=lambda: 1.0, sleep=self.sleep)


def client(script: Callable[[httpx.Request], httpx.Response], retries: Retries | None = None) -> AsyncClient:
    return AsyncClient(transport=httpx.MockTransport(script), retries=retries or Clock().retries())


def ok(body: Any, status: int = 200, **headers: str) -> httpx.Response:
    return httpx.Response(status, json=body, headers=headers)


def problem(code: str, detail: str = "said so", headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
    kind = PROBLEMS[code]
    body = {
        "type": f"urn:batchmeta:problem:{code}",
        "title": kind.title,
        "status": kind.status,
        "detail": detail,
        "code": code,
        "retryable": kind.retryable,
        "request_id": "r-1",
        **more,
    }
    return httpx.Response(kind.status, json=body, headers=headers)


def partition(name: str = "p", revision: int = 1) -> dict[str, Any]:
    return {
        "partition_id": name,
        "revision": revision,
        "state": "open",
        "created_at": "2026-01-01T00:00:00Z",
        "expected_samples": None,
        "max_samples": None,
        "max_attempts": 5,
        "num_samples": 0,
        "num_fields": 0,
        "fields": {},
        "tasks": {},
    }


def batch(indexes: list[int], **more: Any) -> dict[str, Any]:
    """Batch meta of ready rows with one field `x`."""
    plain = {
        "partition_id": "p",
        "revision": 7,
        "size": len(indexes),
        "is_ready": bool(indexes),
        "global_indexes": indexes,
        "fields": ["x"],
        "missing_fields": [],
        "production_status": [1] * len(indexes),
    }
    return {**plain, **more}


class Loopback(ThreadingHTTPServer):
    """Answers every GET with a partition and notes the client's port, so that connections can be told apart."""

    daemon_threads = True
    request_queue_size = 128  # with the 5 of the base class, many who connect at once wait for seconds

    def __init__(self) -> None:
        self.ports: list[int] = []
        self.paths: list[str] = []
        super().__init__(("127.0.0.1", 0), _Talk)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Talk(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Loopback

    def do_GET(self) -> None:
        self.server.ports.append(self.client_address[1])
        self.server.paths.append(self.path)
        body = json.dumps(partition(self.path)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name for it
        pass


@contextmanager
def loopback() -> Iterator[Loopback]:
    server = Loopback()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
