"""A real server on a folder that only its replay finds damaged: it ends, with one line of where and what to do."""

from pathlib import Path

from core.journal.segment import SNAPSHOT_HEADER_BYTES, STEP_BACK
from tests.conftest import refused_start

from .history import NEWER, History, laid_out
from .judging import flipped


def test_a_damaged_snapshot_ends_the_start_with_what_to_do(history: History, tmp_path: Path) -> None:
    data = history.files[NEWER]
    folder = laid_out(tmp_path / "journal", {**history.files, NEWER: flipped(data, len(data) - 1)})
    status, said = refused_start("--journal", f"file://{folder}")
    what = "the image is not what its checksum says"
    assert said == [f"CRITICAL stopping: {folder / NEWER}, byte {SNAPSHOT_HEADER_BYTES}: {what}; {STEP_BACK}"]
    assert status == 1
