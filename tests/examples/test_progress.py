"""The trainer's checkpoints: which version counts after a death at any point."""

from pathlib import Path

import numpy as np
import pytest

from crew.ledger import Entry, Ledger
from examples.grpo import progress as versions
from examples.grpo.progress import SEEN, Progress

TENSORS = {"policy.w": np.arange(3, dtype=np.float32)}


def trained(folder: Path, *claims: str) -> Progress:
    """A version for each claim, with its file, after version 0."""
    progress = Progress()
    versions.save(folder, progress, TENSORS)
    for number, claim in enumerate(claims, 1):
        progress.add(claim, [10 * number, 10 * number + 1], dict.fromkeys(SEEN, float(number)))
        versions.save(folder, progress, TENSORS)
    return progress


def acked(path: Path, *claims: str) -> Path:
    ledger = Ledger(path)
    for claim in claims:
        ledger.ready(Entry("t", "p", claim, "token", [1], [1]))
        ledger.acked(claim)
    ledger.ready(Entry("t", "p", "in doubt", "token", [1], [1]))
    ledger.close()
    return path


def test_a_version_comes_back_as_it_was(tmp_path: Path) -> None:
    saved = trained(tmp_path, "a", "b")
    progress, tensors = versions.load(tmp_path, 2)
    assert (progress.version, progress.claim_id, progress.history) == (2, "b", saved.history)
    assert [rows.tolist() for rows in progress.rows] == [[10, 11], [20, 21]]
    assert progress.column("reward").tolist() == [1.0, 2.0]
    assert {name: tensor.tolist() for name, tensor in tensors.items()} == {"policy.w": [0.0, 1.0, 2.0]}


def test_the_first_version_has_no_rows(tmp_path: Path) -> None:
    trained(tmp_path)
    progress, _ = versions.load(tmp_path, 0)
    assert (progress.version, progress.rows, progress.history) == (0, [], [])
    assert progress.column("reward").tolist() == []


@pytest.mark.parametrize(
    ("claims", "said", "version"),
    [
        ((), (), 0),
        (("a",), (), 0),
        (("a", "b"), ("a", "b"), 2),
        (("a", "b"), ("a",), 1),
        (("a", "in doubt"), ("a",), 1),
    ],
)
def test_a_version_counts_once_its_claim_is_acked(
    tmp_path: Path, claims: tuple[str, ...], said: tuple[str, ...], version: int
) -> None:
    trained(tmp_path, *claims)
    assert versions.newest_valid(tmp_path, acked(tmp_path / "ledger", *said)) == version


def test_a_run_that_begins_has_no_version(tmp_path: Path) -> None:
    assert versions.newest_valid(tmp_path, tmp_path / "ledger") is None


def test_a_file_that_was_being_written_is_no_version(tmp_path: Path) -> None:
    trained(tmp_path)
    (tmp_path / "step-000001.unfinished").write_bytes(b"half")
    assert versions.versions(tmp_path) == [0]


def test_old_versions_go_and_newer_ones_after_a_way_back(tmp_path: Path) -> None:
    trained(tmp_path, "a", "b", "c")
    versions.copy(tmp_path, tmp_path / "kept", 3)
    versions.prune(tmp_path, 2)
    assert versions.versions(tmp_path) == [3, 2]
    versions.drop_after(tmp_path, 2)
    assert versions.versions(tmp_path) == [2]
    assert versions.load(tmp_path / "kept", 3)[0].claim_id == "c"
