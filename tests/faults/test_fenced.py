"""Two real servers on one folder, since somebody removed the lock file: the first is fenced, its next change ends it.

Nothing of it is acknowledged or in the journal from then on; the second never notices.
"""

import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from core.journal import JournalLocked
from tests.conftest import ServerProcess

from .servers import LOST, PATH, ended, insert, journal, kept, running


def answer_of(call: Any) -> str:
    """The code of a problem, or that there was no reply."""
    try:
        reply: httpx.Response = call()
    except httpx.TransportError:
        return LOST
    assert reply.status_code == 503, reply.text
    return str(reply.json()["code"])


def waits(http: httpx.Client) -> tuple[threading.Thread, list[str]]:
    """A claim that waits at that server, and what it is told in the end."""
    told: list[str] = []
    body = {"fields": ["n"], "batch_size": 1, "wait_s": 60}
    waiting = threading.Thread(
        target=lambda: told.append(answer_of(lambda: http.post(f"{PATH}/tasks/t/claims", json=body)))
    )
    waiting.start()
    return waiting, told


def client(server: ServerProcess) -> httpx.Client:
    return httpx.Client(base_url=server.url, timeout=60)


def index_of(reply: httpx.Response) -> int:
    return int(reply.json()["global_indexes"][0])


def test_a_server_whose_folder_another_took_over_acknowledges_nothing_and_ends(tmp_path: Path) -> None:
    with running(ServerProcess(*journal(tmp_path))) as first, client(first) as one, client(first) as other:
        indexes = {key: index_of(insert(one, key)) for key in ("a", "b")}
        (tmp_path / "journal" / "lock").unlink()
        with running(ServerProcess(*journal(tmp_path))) as second, client(second) as two:
            waiting, told = waits(other)
            indexes["c"] = index_of(insert(two, "c"))
            assert answer_of(lambda: insert(one, "late")) in ("journal-unavailable", LOST)
            check_end(first)
            waiting.join(60)
            assert told[0] in ("journal-unavailable", "not-ready", LOST)
            indexes["d"] = index_of(insert(two, "d"))
            with pytest.raises(JournalLocked, match=f"process {second.process.pid}"):
                kept(tmp_path)
            assert second.stop() == 0
    assert kept(tmp_path) == indexes


def check_end(server: ServerProcess) -> None:
    status, said = ended(server)
    why = "the journal did not take a change: fenced, another server owns its folder"
    assert (status, said) == (1, [f"CRITICAL stopping: {why}, its last entry is 1-2"])
