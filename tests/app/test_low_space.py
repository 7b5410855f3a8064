"""A real server with too little free disk space: changes get 503 with a Retry-After, reads and health checks go on."""

import httpx
import pytest

from tests.conftest import ServerProcess

MORE_THAN_ANY_DISK_HAS = 10**17


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "k"}])
def test_a_change_is_refused_and_reads_go_on(tmp_path_factory: pytest.TempPathFactory, headers: dict[str, str]) -> None:
    journal = f"file://{tmp_path_factory.mktemp('low')}/journal"
    server = ServerProcess("--journal", journal, "--min-free-bytes", str(MORE_THAN_ANY_DISK_HAS))
    try:
        with httpx.Client(base_url=server.url) as http:
            reply = http.post("/v1/partitions/p/samples", json={"count": 1}, headers=headers)
            problem = reply.json()
            assert (reply.status_code, problem["code"], problem["retryable"]) == (503, "journal-unavailable", True)
            assert int(reply.headers["Retry-After"]) >= 1
            assert "nothing was changed" in problem["detail"]
            assert http.get("/v1/partitions").json()["partitions"] == []
            assert http.get("/readyz").status_code == 200
            assert http.delete("/v1/partitions/p").json()["cleared_samples"] == 0  # changes nothing
    finally:
        assert server.stop() == 0
