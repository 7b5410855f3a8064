"""A checkpoint that a copy of the process writes: the state at that moment, and errors that say why there is none."""

import os
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from app.snapshots import copied_process
from core.errors import JournalUnavailable
from core.snapshot.checkpoint_folder import CheckpointFolder, CheckpointRequest
from core.snapshot.image import restore
from tests.core.world import add_keys, new_engine, on_torch

pytestmark = pytest.mark.skipif(not copied_process.can_copy(new_engine()), reason="Linux, and readiness on the host")
ORDER = CheckpointRequest("c", None, "2026-01-01T00:00:00Z")


def test_it_has_the_state_of_its_moment_whatever_comes_after(tmp_path: Path) -> None:
    engine, folder = new_engine(), CheckpointFolder(tmp_path / "c")
    add_keys(engine, "p", ["a", "b"])
    revision = engine.revision
    copy = copied_process.begin(engine, folder, ORDER)
    add_keys(engine, "p", ["c"])
    copied_process.wait_for(copy)
    assert folder.find("c").revision == revision
    other = new_engine()
    restore(other, folder.read("c").image)
    assert list(other.partitions["p"].rows.by_key) == [b'"a"', b'"b"']


def test_what_the_folder_refuses_reaches_the_caller(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("no folder")
    copy = copied_process.begin(new_engine(), CheckpointFolder(tmp_path / "c"), ORDER)
    with pytest.raises(JournalUnavailable, match="cannot be reached"):
        copied_process.wait_for(copy)


def test_one_that_is_killed_leaves_no_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CheckpointFolder, "save", lambda *_: signal.pause())
    folder = CheckpointFolder(tmp_path)
    copy = copied_process.begin(new_engine(), folder, ORDER)
    os.kill(copy.pid, signal.SIGKILL)
    with pytest.raises(JournalUnavailable, match="-9"):
        copied_process.wait_for(copy)
    assert folder.all() == []


def test_it_holds_no_port_and_no_file_of_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def save(*_: Any) -> None:
        (tmp_path / "seen").write_text(" ".join(str(Path(f"/proc/self/fd/{fd}").readlink()) for fd in _descriptors()))

    def _descriptors() -> list[int]:
        return [fd for fd in range(3, 256) if Path(f"/proc/self/fd/{fd}").is_symlink()]

    monkeypatch.setattr(CheckpointFolder, "save", save)
    with socket.create_server(("127.0.0.1", 0)), (tmp_path / "journal").open("w"):
        copied_process.wait_for(copied_process.begin(new_engine(), CheckpointFolder(tmp_path), ORDER))
    left = (tmp_path / "seen").read_text().split()
    assert [name.partition(":")[0] for name in left if "/fd" not in name] == ["pipe"]


def test_a_state_that_is_partly_on_a_device_is_not_copied() -> None:
    assert not copied_process.can_copy(new_engine(on_torch("cpu")))
