"""A real server on a folder that only its replay finds damaged: it ends, with one line of where and what to do."""

import subprocess
import sys
from pathlib import Path

from core.journal.segment import SNAPSHOT_HEADER_BYTES, STEP_BACK
from tests.conftest import DEADLINE_S, ROOT

from .history import NEWER, History, laid_out
from .judging import flipped


def test_a_damaged_snapshot_ends_the_start_with_what_to_do(history: History, tmp_path: Path) -> None:
    data = history.files[NEWER]
    folder = laid_out(tmp_path / "journal", {**history.files, NEWER: flipped(data, len(data) - 1)})
    command = [sys.executable, "-m", "app", "--port", "0", "--journal", f"file://{folder}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    what = "the image is not what its checksum says"
    assert done.stderr.splitlines() == [
        f"CRITICAL stopping: {folder / NEWER}, byte {SNAPSHOT_HEADER_BYTES}: {what}; {STEP_BACK}"
    ]
    assert done.returncode == 1
