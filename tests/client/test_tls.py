"""A TLS context is made for https:// alone: once per client, and not on the caller's loop."""

import asyncio
import os
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from batchmeta import AsyncClient
from batchmeta.transports import Transports
from tests.client.service import loopback

VARIABLES = ["SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE"]
FAST = pytest.mark.parametrize("fast", [True, False], ids=["fast", "httpx"])


def _choose(fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not fast:
        monkeypatch.setattr("batchmeta.transports.find_spec", lambda name: None)


@FAST
@pytest.mark.asyncio
async def test_no_certificate_is_read_for_plain_http(
    fast: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def none(*given: object, **more: object) -> ssl.SSLContext:
        raise AssertionError("a TLS context for http://")

    _choose(fast, monkeypatch)
    monkeypatch.setattr(ssl, "create_default_context", none)
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", none)
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", none)
    for name in VARIABLES:
        monkeypatch.setenv(name, str(tmp_path / "missing" / name))
    with loopback() as server:
        async with AsyncClient(server.url) as client:
            assert (await client.partition("p")).partition_id == "/v1/partitions/p"


@pytest.mark.parametrize("name", VARIABLES)
def test_a_new_process_calls_plain_http_whatever_the_tls_variables_say(name: str, tmp_path: Path) -> None:
    with loopback() as server:
        text = f"from batchmeta import Client\nwith Client({server.url!r}) as c: c.partition('p')"
        environment = {**os.environ, name: str(tmp_path / "missing" / name)}
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", text], env=environment, capture_output=True, text=True, timeout=60
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(server.ports) == 1


@FAST
def test_the_context_for_https_is_made_once_and_beside_the_loop(fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []

    def made() -> ssl.SSLContext:
        threads.append(threading.get_ident())
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    async def opened(transports: Transports) -> int:
        found = await asyncio.gather(*(transports.here() for _ in range(5)))
        return len(set(map(id, found)))

    _choose(fast, monkeypatch)
    monkeypatch.setattr(httpx, "create_ssl_context", lambda verify=True, **more: made() if verify is True else verify)
    transports = Transports("https://host", 1.0, None)
    assert [asyncio.run(opened(transports)) for _ in range(2)] == [1, 1]
    assert len(threads) == 1
    assert threading.get_ident() not in threads
