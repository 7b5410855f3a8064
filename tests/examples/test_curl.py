"""The worker in curl and a shell, on a real server, with bytes in a folder."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from batchmeta import Client
from tests.conftest import DEADLINE_S, ROOT
from tests.crew.conftest import skip_unless_ci

WORKER = ROOT / "examples" / "curl" / "worker.sh"
TEXTS = {
    "a": "one",
    "b": "one two",
    "c": "  three little words ",
    "d": "",
    "e": "one\ntwo\tthree four five",
    "f": "six",
}
WORDS = {"a": 1, "b": 2, "c": 3, "d": 0, "e": 5, "f": 1}


@pytest.fixture(autouse=True)
def _curl() -> None:
    if shutil.which("curl") is None:
        skip_unless_ci("curl is not installed")


def worker(*arguments: str) -> "subprocess.Popen[str]":
    command = ["/bin/sh", str(WORKER), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    try:
        said, errors = process.communicate(timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        said, errors = process.communicate()
    return process.returncode, said, errors


def put(client: Client, partition: str, folder: Path) -> dict[str, int]:
    indexes = client.insert(partition, keys=list(TEXTS)).global_indexes
    for index, text in zip(indexes, TEXTS.values(), strict=True):
        (folder / f"{index}@text").write_text(text)
    client.produce(partition, {"text": {"kind": "object"}}, keys=list(TEXTS))
    return dict(zip(TEXTS, indexes, strict=True))


def test_two_workers_share_the_samples_and_write_what_they_found(server_url: str, tmp_path: Path) -> None:
    with Client(server_url) as client:
        workers = [worker(server_url, "by-curl", str(tmp_path)) for _ in range(2)]
        indexes = put(client, "by-curl", tmp_path)
        client.seal("by-curl")
        done = [ended(process) for process in workers]
        batch = client.read("by-curl", fields=["words"], include=["backend_meta"])
        counts = client.consumption("by-curl", "count_words", counts_only=True)
    assert [status for status, _, _ in done] == [0, 0], done
    assert {key: int((tmp_path / f"{index}@words").read_text()) for key, index in indexes.items()} == WORDS
    assert batch.is_ready
    assert list((batch.backend_meta or {})["words"]) == ["2"] * len(TEXTS)
    assert (counts.consumed, counts.leased, counts.done) == (len(TEXTS), 0, True)
    told = ",".join(line.rpartition(" ")[2] for _, said, _ in done for line in said.splitlines())
    assert sorted(map(int, told.split(","))) == sorted(indexes.values())


def test_a_refusal_ends_it_with_what_to_change(server_url: str, tmp_path: Path) -> None:
    with Client(server_url) as client:
        client.put_partition("cleared-by-curl")
        client.delete_partition("cleared-by-curl")
    status, _, errors = ended(worker(server_url, "cleared-by-curl", str(tmp_path)))
    assert status != 0
    assert "410" in errors


def test_wrong_use_is_told() -> None:
    status, _, errors = ended(worker("http://127.0.0.1:9"))
    assert (status, errors.startswith("usage: ")) == (2, True)


def test_it_is_a_program_of_its_own() -> None:
    assert os.access(WORKER, os.X_OK)
