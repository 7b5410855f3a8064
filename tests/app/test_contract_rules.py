"""The contract's rules for every call and its server section, over HTTP: headers, problems, limits, codes."""

from datetime import datetime, timedelta

import pytest

from batchmeta.wire import PROBLEMS

from .service import Api, connect, exchange, head, refused

ROUTES = ["/healthz", "/readyz", "/v1/server", "/v1/partitions", "/v1/partitions/nobody", "/nowhere"]


@pytest.mark.parametrize("path", ROUTES)
def test_every_reply_carries_a_request_id_an_epoch_and_no_store(api: Api, path: str) -> None:
    reply = api.send("GET", path)
    assert len(reply.headers["x-request-id"]) >= 8
    assert reply.headers["x-epoch"] == "1"
    assert reply.headers["cache-control"] == "no-store"


def test_two_requests_have_two_ids(api: Api) -> None:
    first, second = (api.send("GET", "/healthz").headers["x-request-id"] for _ in range(2))
    assert first != second


@pytest.mark.parametrize("given", ["x", "a b", "~" * 128])
def test_the_callers_request_id_is_kept(api: Api, given: str) -> None:
    reply = api.send("GET", "/v1/partitions/nobody", headers={"X-Request-ID": given})
    assert reply.headers["x-request-id"] == reply.json()["request_id"] == given


@pytest.mark.parametrize("given", ["", "~" * 129, "\xe9", "a\tb"])
def test_a_request_id_that_is_not_printable_ascii_is_replaced(api: Api, given: str) -> None:
    lines = head("GET", "/healthz", f"X-Request-ID: {given}")
    assert exchange(api.url, lines).headers["x-request-id"] not in ("", given)


def test_what_is_no_route_is_404_and_says_so(api: Api) -> None:
    refused(api.send("GET", "/v2/partitions"), 404, "route-not-found", "/v2/partitions", "/docs")
    refused(api.send("GET", "/v1/partitions/"), 404, "route-not-found")
    refused(api.send("POST", f"{api.path}/unseal", {}), 404, "route-not-found")
    refused(api.send("GET", "/v1/checkpoint"), 404, "route-not-found")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("POST", "", "DELETE, GET, HEAD, PATCH, PUT"),
        ("PUT", "/seal", "POST"),
        ("DELETE", "/batch-meta", "GET, HEAD, POST"),
        ("PUT", "/backend-meta", "GET, HEAD, PATCH, POST"),
        ("GET", "/samples", "POST"),
    ],
)
def test_another_method_is_405_with_every_method_of_the_path(api: Api, method: str, path: str, allow: str) -> None:
    reply = api.send(method, api.path + path)
    refused(reply, 405, "method-not-allowed", method)
    assert reply.headers["allow"] == allow


@pytest.mark.parametrize(
    "accept", ["text/html", "application/json;q=0", "image/*, text/plain", "*/*, application/json;q=0.0"]
)
def test_who_does_not_accept_json_gets_406(api: Api, accept: str) -> None:
    refused(api.send("GET", "/v1/server", headers={"Accept": accept}), 406, "not-acceptable", "application/json")


@pytest.mark.parametrize(
    "accept", ["*/*", "application/*;q=0.1", "text/html, application/json;q=0.9", "", "*/*;q=0, application/json"]
)
def test_who_accepts_json_at_all_gets_it(api: Api, accept: str) -> None:
    reply = api.send("GET", "/v1/server", headers={"Accept": accept})
    assert reply.headers["content-type"] == "application/json"


def test_null_for_an_optional_member_means_absent(api: Api) -> None:
    body = api.ok("POST", "samples", {"count": 1, "keys": None, "group_ids": None, "custom_meta": None, "expand": None})
    assert body["created"] == 1


def test_a_type_with_parameters_is_json_too(api: Api) -> None:
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert api.send("POST", "samples", content=b'{"count": 1}', headers=headers).status_code == 201


def test_every_reply_about_a_partition_names_it_and_its_revision(api: Api) -> None:
    revision = api.produce(["a"], "n")["revision"]
    calls = [
        ("GET", "", None),
        ("GET", "batch-meta", None),
        ("POST", "batch-meta", {}),
        ("GET", "backend-meta", None),
        ("GET", "production?fields=n", None),
        ("GET", "keys", None),
        ("GET", "tasks/t/consumption", None),
        ("POST", "keys/lookup", {"global_indexes": [0]}),
        ("POST", "samples/delete", {"keys": []}),
        ("POST", "consumption/reset", {}),
        ("POST", "tasks/t/consumption/reset", {}),
        ("PATCH", "custom-meta", {"keys": ["a"], "custom_meta": [None]}),
        ("PUT", "", {}),
        ("PATCH", "backend-meta", {"keys": ["a"], "backend_meta": {}}),
    ]
    for method, path, body in calls:
        reply = api.ok(method, path, body)
        assert (reply["partition_id"], reply["revision"]) == (api.name, revision), (method, path)


def test_a_call_that_leaves_everything_as_it_was_is_no_change(filled: Api) -> None:
    before = filled.dump()
    schema = {"ids": {"dtype": "int64", "lengths": [3, 5]}}
    again = {"keys": ["a", "b"], "field_schema": schema, "backend_meta": {"ids": ["x", "y"]}}
    filled.ok("POST", "production", again)
    filled.ok("POST", "samples", {"keys": ["a", "b"], "group_ids": {"const": "g"}})
    filled.ok("PATCH", "custom-meta", {"keys": ["a"], "custom_meta": [{"n": 1}]})
    filled.ok("PATCH", "backend-meta", {"keys": ["a"], "backend_meta": {"ids": ["x"]}})
    filled.ok("POST", "tasks/nobody/consumption/reset", {})
    filled.ok("POST", "samples/delete", {"keys": ["nobody"]})
    assert filled.dump() == before


def test_the_revision_is_one_counter_for_the_whole_service(api: Api) -> None:
    first = api.ok("PUT", "")["revision"]
    other = Api(api.url)
    with other.http:
        assert other.ok("PUT", "")["revision"] == first + 1
    assert api.ok("POST", "samples", {"count": 1})["revision"] == first + 2
    assert api.ok("GET", "/v1/server")["revision"] == first + 2


def test_the_server_says_what_it_is(api: Api) -> None:
    body = api.ok("GET", "/v1/server")
    assert (body["name"], body["api"], body["device"], body["durability"]) == ("batchmeta", "v1", "cpu", "memory")
    assert body["epoch"] == 1
    assert datetime.fromisoformat(body["started_at"]).utcoffset() == timedelta(0)
    assert body["limits"] == {
        "max_rows": 65_536,
        "max_body_bytes": 64 * 2**20,
        "max_checkpoint_bytes": 16 * 2**30,
        "max_cell_bytes": 64 * 2**10,
        "max_depth": 64,
        "max_page": 10_000,
        "max_wait_s": 60,
        "max_waiting_per_client": 10_000,
    }


def test_alive_and_ready(api: Api) -> None:
    assert api.ok("GET", "/healthz") == {"status": "ok"}
    assert api.ok("GET", "/readyz") == {"status": "ready"}


def test_the_docs_and_their_assets_are_served_by_us(api: Api) -> None:
    page = api.send("GET", "/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "http" not in page.text.replace("http-equiv", "")
    for asset in ("swagger-ui.css", "swagger-ui-bundle.js", "docs.js"):
        assert f"/static/{asset}" in page.text
        assert api.send("GET", f"/static/{asset}").status_code == 200
    assert api.ok("GET", "/openapi.json")["openapi"].startswith("3.1")


def test_no_path_leads_out_of_the_assets(api: Api) -> None:
    for path in ("/static/../app/settings.py", "/static/..%2f..%2fapp/settings.py", "/static/%2e%2e/settings.py"):
        assert exchange(api.url, head("GET", path)).status_code in (404, 422)


def test_a_connection_is_kept_for_the_next_call(api: Api) -> None:
    with connect(api.url) as connection:
        for _ in range(3):
            connection.sendall(head("GET", "/healthz"))
            data = b""
            while not data.endswith(b"}"):
                data += connection.recv(4096)
            assert data.startswith(b"HTTP/1.1 200")


def test_the_codes_and_statuses_are_the_contracts() -> None:
    statuses = {code: kind.status for code, kind in PROBLEMS.items()}
    assert {code for code, kind in PROBLEMS.items() if kind.retryable} == {
        "idempotency-in-flight",
        "sample-clearing",
        "too-many-samples",
        "too-many-waiting",
        "overloaded",
        "not-ready",
        "journal-unavailable",
    }
    assert statuses == {
        "bad-request": 400, "forbidden": 403, "route-not-found": 404, "partition-not-found": 404,
        "sample-not-found": 404, "key-not-found": 404, "field-not-found": 404, "claim-not-found": 404,
        "clear-not-found": 404, "checkpoint-not-found": 404, "epoch-mismatch": 409,
        "checkpoint-exists": 409, "checkpoint-corrupt": 409, "clear-closed": 409, "sample-clearing": 409,
        "method-not-allowed": 405, "partition-sealed": 409, "lease-lost": 409,
        "not-acceptable": 406, "partition-conflict": 409, "dtype-conflict": 409, "kind-conflict": 409,
        "group-conflict": 409, "idempotency-in-flight": 409, "idempotency-mismatch": 422, "partition-cleared": 410,
        "sample-cleared": 410, "compacted": 410, "precondition-failed": 412,
        "body-too-large": 413, "unsupported-media-type": 415, "invalid-request": 422, "duplicate-keys": 422,
        "duplicate-indexes": 422, "too-many-samples": 429, "too-many-waiting": 429, "internal": 500,
        "overloaded": 503, "not-ready": 503, "journal-unavailable": 503,
    }  # fmt: skip
