"""The tests of damage can fail: each bug that is planted here is seen, in each kind of file that it concerns."""

from collections.abc import Callable
from pathlib import Path

import pytest

from core.journal import recovery, segment, snapshots
from core.journal.segment import SEGMENT_HEADER_BYTES, Damage

from .history import CLOSED, ENTRIES, FILES, NEWEST, OLDER, History
from .judging import flipped, judge

Plant = Callable[[pytest.MonkeyPatch], None]


class Agreeable(int):
    """A checksum that is whatever it should be."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = int.__hash__


def skip_checksums(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(segment, "crc32", lambda data: Agreeable())


def cut_anything(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(segment, "_tail", lambda offset, what, torn: Damage(offset, what, torn=True))


def miss_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(recovery, "_check_listing", lambda *_: None)
    patch.setattr(recovery, "_check_never_opened", lambda *_: None)


def look_at_the_newest_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(snapshots, "check", lambda *_: None)


PLANTED: dict[Plant, list[str]] = {
    skip_checksums: FILES,
    cut_anything: [NEWEST],
    look_at_the_newest_alone: [OLDER],
}


@pytest.mark.parametrize(("bug", "name"), [(bug, name) for bug, names in PLANTED.items() for name in names])
def test_a_planted_bug_is_seen_by_a_flip(
    history: History, folder: Path, monkeypatch: pytest.MonkeyPatch, bug: Plant, name: str
) -> None:
    # The term in the head; the first entry of a segment; bytes that stand in a compressed image as they are.
    offset = 20 if name == "head" else 250 if name.endswith("snapshot") else SEGMENT_HEADER_BYTES + 60
    files = {**history.files, name: flipped(history.files[name], offset)}
    judge(history, folder, files, ENTRIES - 1)
    bug(monkeypatch)
    with pytest.raises((AssertionError, ValueError, KeyError, TypeError)):
        judge(history, folder, files, ENTRIES - 1)


@pytest.mark.parametrize("gone", [("head",), ("head", CLOSED, NEWEST)], ids=len)
def test_a_planted_bug_is_seen_by_a_loss(
    history: History, folder: Path, monkeypatch: pytest.MonkeyPatch, gone: tuple[str, ...]
) -> None:
    files = {name: data for name, data in history.files.items() if name not in gone}
    judge(history, folder, files, ENTRIES)
    miss_nothing(monkeypatch)
    with pytest.raises(AssertionError):
        judge(history, folder, files, ENTRIES)
