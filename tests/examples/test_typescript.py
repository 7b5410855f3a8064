"""The worker in TypeScript: it compiles against the committed OpenAPI, and works on a real server."""

import shutil
import subprocess
from pathlib import Path

import pytest

from batchmeta import Client
from tests.conftest import DEADLINE_S, ROOT
from tests.crew.conftest import skip_unless_ci

SOURCE = ROOT / "examples" / "typescript"
# Kept between runs, out of sight of the tests that read every file: some 47 MB of packages.
PLACE = ROOT / ".cache" / "examples"
INSTALL_S = 300
TEXTS = ["one", "", "three, 3: déjà", "42", "five six"]
LETTERS = [3, 0, 9, 0, 7]


def npm(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = ["npm", "--no-audit", "--no-fund", "--no-update-notifier", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_S, check=False)


@pytest.fixture(scope="module")
def program() -> Path:
    """The worker, compiled anew; its packages are installed when their list has changed."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        skip_unless_ci("node and npm are not installed")
    folder = PLACE / "examples" / "typescript"
    lock = folder / "package-lock.json"
    is_installed = lock.exists() and lock.read_bytes() == (SOURCE / "package-lock.json").read_bytes()
    shutil.copytree(SOURCE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules", "build"))
    # The worker's scripts name the OpenAPI from their own folder.
    shutil.copytree(ROOT / "docs" / "reference", PLACE / "docs" / "reference", dirs_exist_ok=True)
    if not is_installed or not (folder / "node_modules").is_dir():
        installed = npm(folder, "ci")
        if installed.returncode:
            lock.unlink()
            skip_unless_ci(f"npm ci: {installed.stderr[-500:]}")
    for step in ("generate", "build"):
        done = npm(folder, "run", step)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "build" / "worker.js"


def run(program: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = ["node", str(program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)


def test_it_writes_what_it_found_of_every_sample(program: Path, server_url: str, tmp_path: Path) -> None:
    with Client(server_url) as client:
        keys = [f"t{number}" for number in range(len(TEXTS))]
        indexes = list(client.insert("by-typescript", keys=keys).global_indexes)
        for index, text in zip(indexes, TEXTS, strict=True):
            (tmp_path / f"{index}@text").write_text(text)
        client.produce("by-typescript", {"text": {"kind": "object"}}, keys=keys)
        client.seal("by-typescript")
        done = run(program, server_url, "by-typescript", str(tmp_path))
        batch = client.read("by-typescript", fields=["letters"], include=["custom_meta"])
        counts = client.consumption("by-typescript", "count_letters", counts_only=True)
    assert done.returncode == 0, done.stderr
    assert [int((tmp_path / f"{index}@letters").read_text()) for index in indexes] == LETTERS
    assert batch.is_ready
    assert batch.custom_meta == [{"letters": count} for count in LETTERS]
    assert (counts.consumed, counts.leased, counts.done) == (len(TEXTS), 0, True)


def test_a_refusal_ends_it_with_what_to_change(program: Path, server_url: str, tmp_path: Path) -> None:
    with Client(server_url) as client:
        client.put_partition("cleared-by-typescript")
        client.delete_partition("cleared-by-typescript")
    done = run(program, server_url, "cleared-by-typescript", str(tmp_path))
    assert done.returncode == 1
    assert "410" in done.stderr
    assert "partition-cleared" in done.stderr


def test_wrong_use_is_told(program: Path) -> None:
    done = run(program, "http://127.0.0.1:9")
    assert (done.returncode, done.stderr.startswith("usage: ")) == (2, True)
