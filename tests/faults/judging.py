"""The rule for every damaged folder: an exact earlier state, or a refusal that says what to do; both are reported."""

import re
from pathlib import Path

from core.journal import snapshots
from core.journal.segment import RESTORE, STEP_BACK, UPGRADE

from .history import ENTRIES, History, contents, laid_out, started, verified

ADVICE = (RESTORE, STEP_BACK, UPGRADE, snapshots.LEAVE_OUT, "move it out of the folder")
REWRITTEN = ("head", "lock")


def judge(history: History, folder: Path, files: dict[str, bytes], least: int) -> int | None:
    """What law is kept: entries up to `least` are there, or nothing starts. The last entry found, or None."""
    laid_out(folder, files)
    status, told = verified(folder)
    assert contents(folder) == files, "to look changes nothing"
    found = started(folder)
    if isinstance(found, str):
        assert (status, told) == (1, found)
        assert re.match(rf"{folder}/[^/]+, byte \d+: .+; .*(?:{'|'.join(ADVICE)})$", found), found
        assert without_head(contents(folder)) == without_head(files), "a refusal loses nothing"
        return None
    assert least <= found.seq <= ENTRIES
    assert found.state == history.states[found.seq], "another state than any that was acknowledged"
    assert status == 1, "damage that --verify does not tell of"
    return found.seq


def without_head(files: dict[str, bytes]) -> dict[str, bytes]:
    """What a start has no business with before it knows that all is well."""
    return {name: data for name, data in files.items() if name not in REWRITTEN}


def flipped(data: bytes, offset: int) -> bytes:
    return data[:offset] + bytes([data[offset] ^ 1 << offset % 8]) + data[offset + 1 :]
