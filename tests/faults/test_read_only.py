"""A data folder that may not be written to: the start is refused in one line, and `--verify` looks all the same."""

import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from core.journal import BEFORE_FIRST, FileJournal
from tests.conftest import DEADLINE_S, ROOT

# For root permissions do not bind, unless the right to pass them over is given up first.
BOUND = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


def run(before: list[str], folder: Path, *more: str) -> "subprocess.Popen[str]":
    command = [*before, sys.executable, "-m", "app", "--port", "0", "--journal", f"file://{folder}", *more]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def told(process: "subprocess.Popen[str]") -> tuple[int, list[str]]:
    said = "".join(process.communicate(timeout=DEADLINE_S))
    return process.returncode, said.splitlines()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sound journal of one entry that changes nothing."""
    folder = tmp_path / "journal"
    with closing(FileJournal(folder)) as journal:
        journal.open()
        journal.append(BEFORE_FIRST, b"\x90")
    return folder


def check_refused(process: "subprocess.Popen[str]", folder: Path, where: Path, why: str) -> None:
    status, said = told(process)
    assert (status, said) == (2, [f"batchmeta: the journal in {folder} failed: {why} ({where})"])


@pytest.mark.skipif(bool(BOUND) and shutil.which("setpriv") is None, reason="root, to whom permissions do not apply")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    mode = tmp_path.stat().st_mode
    tmp_path.chmod(mode & ~0o222)
    try:
        check_refused(run(BOUND, tmp_path / "new"), tmp_path / "new", tmp_path / "new", "Permission denied")
    finally:
        tmp_path.chmod(mode)


def test_a_disk_that_is_mounted_read_only(folder: Path) -> None:
    mounted = f"mount --bind {folder} {folder} && mount -o remount,bind,ro {folder}"
    own = ["unshare", "--mount", "--map-root-user", "sh", "-c", f'{mounted} && exec "$@"', "sh"]
    if subprocess.run([*own, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mounts of one's own here")
    start, look = run(own, folder), run(own, folder, "--verify")
    check_refused(start, folder, folder / "lock", "Read-only file system")
    status, (line,) = told(look)
    assert (status, "is sound: 1 entries" in line) == (0, True)
