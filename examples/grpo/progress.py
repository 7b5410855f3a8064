"""The trainer's own checkpoints: a safetensors file for each version, with the rows that made it and what was seen.

A version counts from the ack of its rows on. So a file names its claim, and one whose claim the ledger does not have as
acked is void: whoever starts next goes back to the version before.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save_file

from crew.ledger import read

# What is seen at each step: the reward is the mean of the batch, staleness in versions, the others count answers.
SEEN = ("seconds", "reward", "kl", "staleness", "unfinished", "ready", "leased", "trained", "too_old")
ROWS, HISTORY = "trained_rows", "history"


@dataclass(slots=True)
class Progress:
    """How far a run is. `rows`: those trained, in order, each step's as one array; `history`: SEEN of each step."""

    version: int = 0
    claim_id: str = ""
    rows: list[NDArray[np.int64]] = field(default_factory=list)
    history: list[list[float]] = field(default_factory=list)

    def add(self, claim_id: str, rows: list[int], seen: dict[str, float]) -> None:
        """One more step."""
        self.version += 1
        self.claim_id = claim_id
        self.rows.append(np.array(rows, np.int64))
        self.history.append([seen[what] for what in SEEN])

    def column(self, what: str) -> NDArray[np.float64]:
        """float64 [steps]: one of SEEN."""
        return np.array(self.history, np.float64).reshape(-1, len(SEEN))[:, SEEN.index(what)]


Tensors = dict[str, NDArray[np.generic]]


def name(version: int) -> str:
    """Of a version, as a file and as a checkpoint of the service; names are in the order of the versions."""
    return f"step-{version:06d}"


def version_file(folder: Path, version: int) -> Path:
    """Where a version lies."""
    return folder / f"{name(version)}.safetensors"


def versions(folder: Path) -> list[int]:
    """Those that have a file, the newest first."""
    return sorted((int(path.stem.removeprefix("step-")) for path in folder.glob("step-*.safetensors")), reverse=True)


def save(folder: Path, progress: Progress, tensors: Tensors) -> None:
    """Write a version; a process that is killed meanwhile leaves no file."""
    path = version_file(folder, progress.version)
    rows = np.concatenate(progress.rows) if progress.rows else np.zeros(0, np.int64)
    history = np.array(progress.history, np.float64).reshape(-1, len(SEEN))
    told = {"claim_id": progress.claim_id, "lengths": json.dumps([len(part) for part in progress.rows])}
    unfinished = path.with_suffix(".unfinished")
    save_file(tensors | {ROWS: rows, HISTORY: history}, unfinished, told)
    unfinished.replace(path)


def load(folder: Path, version: int) -> tuple[Progress, Tensors]:
    """A version and the learner's tensors."""
    with safe_open(version_file(folder, version), framework="np") as file:
        told = file.metadata()
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  # it is no dict
    ends = np.cumsum(json.loads(told["lengths"]), dtype=np.int64)[:-1]
    rows = np.split(tensors.pop(ROWS), ends) if version else []
    history = tensors.pop(HISTORY).tolist()
    return Progress(version, told["claim_id"], rows, history), tensors


def newest_valid(folder: Path, ledger: Path) -> int | None:
    """The newest version that counts; None where a run begins."""
    acked = {entry.claim_id for entry in read(ledger).acked}
    return next((version for version in versions(folder) if _is_valid(folder, version, acked)), None)


def _is_valid(folder: Path, version: int, acked: set[str]) -> bool:
    with safe_open(version_file(folder, version), framework="np") as file:
        return version == 0 or file.metadata()["claim_id"] in acked


def prune(folder: Path, keep: int) -> None:
    """Delete all but the newest `keep` versions."""
    for version in versions(folder)[keep:]:
        version_file(folder, version).unlink()


def drop_after(folder: Path, version: int) -> None:
    """Delete all that are newer."""
    for newer in versions(folder):
        if newer > version:
            version_file(folder, newer).unlink()


def copy(source: Path, target: Path, version: int) -> None:
    """The same version in another folder."""
    target.mkdir(parents=True, exist_ok=True)
    path = version_file(target, version)
    if not path.exists():
        os.link(version_file(source, version), path)
