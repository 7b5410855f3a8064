"""The ledger of a worker: a record around each ack, so that its work is known whenever it is killed.

It has `ready` before the ack, with all that is needed to repeat it, and `acked` or `void` after it. A line is one write
to a file, so SIGKILL leaves whole lines. An ack that was sent and not answered is in doubt until it is sent again.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from batchmeta import AsyncClient, ClaimNotFound, LeaseLost


@dataclass(frozen=True, slots=True)
class Entry:
    """One batch that a worker is done with. `attempts[i]`: how often row i had been handed out by then."""

    task: str
    partition: str
    claim_id: str
    token: str
    rows: list[int]
    attempts: list[int]


class Ledger:
    """The file of one worker, who may have several lives."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def ready(self, entry: Entry) -> None:
        """The work is done, and the ack is about to be sent."""
        self._write({"ready": asdict(entry)})

    def acked(self, claim_id: str) -> None:
        """The service took the ack: these rows are done, by this worker and nobody else."""
        self._write({"acked": claim_id})

    def void(self, claim_id: str) -> None:
        """The lease had ended before: the work does not count."""
        self._write({"void": claim_id})

    def close(self) -> None:
        os.close(self._file)

    def _write(self, line: object) -> None:
        os.write(self._file, json.dumps(line).encode() + b"\n")


def ledger_file(folder: Path, worker: str) -> Path:
    """Where a worker keeps its ledger."""
    return folder / f"{worker}.jsonl"


@dataclass(frozen=True, slots=True)
class Books:
    """What a ledger says: entries acknowledged, void, and in doubt."""

    acked: list[Entry]
    void: list[Entry]
    in_doubt: list[Entry]


def read(path: Path) -> Books:
    """The books of one worker; empty ones if it never wrote."""
    entries: dict[str, Entry] = {}
    fates: dict[str, str] = {}
    for verb, said in _lines(path):
        if verb == "ready":
            entries[said["claim_id"]] = Entry(**said)
        else:
            fates[said] = verb
    by_fate: dict[str, list[Entry]] = {"acked": [], "void": [], "in doubt": []}
    for claim_id, entry in entries.items():
        by_fate[fates.get(claim_id, "in doubt")].append(entry)
    return Books(by_fate["acked"], by_fate["void"], by_fate["in doubt"])


def _lines(path: Path) -> Iterator[tuple[str, Any]]:
    for line in path.read_text().splitlines() if path.exists() else ():
        yield from json.loads(line).items()


async def settle_doubts(client: AsyncClient, path: Path) -> list[Entry]:
    """Say each ack in doubt again for a worker that is dead, and enter the answer; those that were taken."""
    taken = []
    ledger = Ledger(path)
    try:
        for entry in read(path).in_doubt:
            try:
                await client.ack(entry.claim_id, entry.token, accept=entry.rows)
            except (LeaseLost, ClaimNotFound):
                ledger.void(entry.claim_id)
            else:
                ledger.acked(entry.claim_id)
                taken.append(entry)
    finally:
        ledger.close()
    return taken
