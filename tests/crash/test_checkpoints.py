"""Checkpoints of a real server with a journal in a folder, made while others write; and a restore that was answered
outlives a kill.
"""

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.__main__ import main
from core.journal import BEFORE_FIRST, FileJournal
from tests.conftest import ServerProcess

WRITERS = 4
FIELD = {"n": {"dtype": "int64", "shape": []}}


class Writer(threading.Thread):
    """Inserts a key after the other, each a call, until it is told to stop; `done` are acknowledged."""

    def __init__(self, url: str, name: str) -> None:
        super().__init__(daemon=True)
        self.url, self.path, self.done, self.stop = url, f"/v1/partitions/{name}", 0, threading.Event()

    def run(self) -> None:
        with httpx.Client(base_url=self.url, timeout=60) as http:
            while not self.stop.is_set():
                body = {"keys": [f"{self.done:06d}"], "create": True, "field_schema": FIELD}
                assert http.post(f"{self.path}/production", json=body).status_code == 200
                self.done += 1


def server(folder: Path, *more: str) -> ServerProcess:
    return ServerProcess("--journal", f"file://{folder}/journal", *more)


def keys(http: httpx.Client, name: str) -> list[str]:
    """All keys of a partition, in index order."""
    path, cursor, found = f"/v1/partitions/{name}/keys?limit=10000", "", list[str]()
    while True:
        page = http.get(path + cursor).json()
        found += [line["key"] for line in page["keys"]]
        if page["next_cursor"] is None:
            return found
        cursor = f"&cursor={page['next_cursor']}"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A server that lives on, what each writer had done before and after the checkpoint "under-load", and it."""
    folder = tmp_path_factory.mktemp("saved")
    service = server(folder)
    writers = [Writer(service.url, f"w{number}") for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    with httpx.Client(base_url=service.url, timeout=120) as http:
        while min(writer.done for writer in writers) < 20:
            assert all(writer.is_alive() for writer in writers)
        before = [writer.done for writer in writers]
        made = http.post("/v1/checkpoints", json={"name": "under-load"})
        assert made.status_code == 201, made.text
        after = [writer.done + 1 for writer in writers]  # one more may be on its way
        for writer in writers:
            writer.stop.set()
        for writer in writers:
            writer.join()
        done = [writer.done for writer in writers]
        yield {"folder": folder, "server": service, "before": before, "after": after, "done": done, "http": http}
    if service.process.poll() is None:
        service.kill()


def check(http: httpx.Client, written: dict[str, Any]) -> None:
    """Of each writer a beginning without a gap: all that was acknowledged before, nothing that was begun after."""
    for number in range(WRITERS):
        there = keys(http, f"w{number}")
        assert there == [f"{i:06d}" for i in range(len(there))]
        assert written["before"][number] <= len(there) <= written["after"][number]


def test_others_went_on_while_it_was_made(written: dict[str, Any]) -> None:
    went_on = [after - before for before, after in zip(written["before"], written["after"], strict=True)]
    assert min(went_on) > 2, went_on  # one was on its way before, one may be after


def test_in_an_empty_folder_it_is_the_state_of_one_moment(written: dict[str, Any], tmp_path: Path) -> None:
    file = written["folder"] / "journal.checkpoints" / "under-load.checkpoint"
    service = server(tmp_path, "--restore", str(file))
    with httpx.Client(base_url=service.url, timeout=60) as http:
        check(http, written)
        assert http.get("/v1/server").json()["epoch"] == 2**32 + 1
        made = http.post("/v1/partitions/new/samples", json={"count": 1}).json()
        assert made["global_indexes"][0] >= 2**32
    service.kill()
    again = server(tmp_path)
    with httpx.Client(base_url=again.url, timeout=60) as http:
        check(http, written)
    assert again.stop() == 0
    assert main(["--verify", "--journal", f"file://{tmp_path}/journal"]) == 0


def test_a_restore_that_was_answered_outlives_a_kill(written: dict[str, Any]) -> None:
    http = written["http"]
    assert [len(keys(http, f"w{n}")) for n in range(WRITERS)] == written["done"]
    went = http.post("/v1/checkpoints/under-load/restore", json={}).json()
    check(http, written)
    made = http.post("/v1/partitions/w0/samples", json={"keys": ["late"]}).json()
    assert made["global_indexes"][0] == went["burnt"][1] + 1
    written["server"].kill()
    again = server(written["folder"])
    with httpx.Client(base_url=again.url, timeout=60) as http:
        assert http.get("/v1/server").json()["epoch"] == went["epoch"] == 2
        there = keys(http, "w0")
        assert there.pop() == "late"
        assert there == [f"{i:06d}" for i in range(len(there))]
        assert [one["name"] for one in http.get("/v1/checkpoints").json()["checkpoints"]] == ["under-load"]
    assert again.stop() == 0


@pytest.mark.parametrize("wrong", ["history", "foreign", "none"])
def test_a_start_with_it_is_refused_in_one_line(
    written: dict[str, Any], tmp_path: Path, wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file, journal = tmp_path / "file", tmp_path / "journal"
    if wrong == "history":
        with closing(FileJournal(journal)) as there:
            there.open()
            there.append(BEFORE_FIRST, b"\x90")
        file = written["folder"] / "journal.checkpoints" / "under-load.checkpoint"
    elif wrong == "foreign":
        file.write_bytes(b"hello")
    assert main(["--port", "0", "--journal", f"file://{journal}", "--restore", str(file)]) == 2
    told = capsys.readouterr().err
    assert told.startswith("batchmeta: ")
    assert told.count("\n") == 1
    assert {"history": "empty folder", "foreign": str(file), "none": str(file)}[wrong] in told
    assert wrong == "history" or not journal.exists()
