"""A data folder in which a small service has lived: snapshots, segments since the older one, a head that was rewritten.

No test lives here. Every state that was ever acknowledged is known, so whatever a start makes of the folder later is
one of them or it is wrong.
"""

import contextlib
import io
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import msgspec

from app.settings import Settings, load
from app.verify import verify
from core.engine import Engine
from core.journal import BEFORE_FIRST, FileJournal, JournalError
from core.journal.segment import decode_head
from core.runtime.replay import replay
from core.snapshot.image import image
from tests.contracts.journal_disks import QUICK_DISK
from tests.core.world import add, add_keys, new_engine, write

ENTRIES, SEGMENT_BYTES = 12, 700
OLDER, NEWER, CLOSED, NEWEST = (
    f"{number:020d}.{kind}" for number, kind in ((4, "snapshot"), (9, "snapshot"), (5, "segment"), (10, "segment"))
)
FILES = ["head", CLOSED, NEWEST, OLDER, NEWER]


@dataclass(frozen=True, slots=True)
class History:
    """The folder's files in the end, each one's earlier contents, and the state (an image) after each entry."""

    files: dict[str, bytes]
    states: dict[int, bytes]
    earlier: dict[str, list[bytes]]

    @property
    def journal(self) -> int:
        """The number that all its files bear."""
        return decode_head(self.files["head"]).journal

    def named(self, ending: str) -> list[str]:
        """Its segments or snapshots, the oldest first."""
        return sorted(name for name in self.files if name.endswith(ending))


@dataclass(frozen=True, slots=True)
class Started:
    """What a start made of a folder: the last entry, the state, and what was said of a cut."""

    seq: int
    state: bytes
    log: list[str] = field(default_factory=list)


def journal_in(folder: Path, log: list[str] | None = None) -> FileJournal:
    sink = (lambda message: None) if log is None else log.append
    return FileJournal(folder, segment_bytes=SEGMENT_BYTES, floor_bytes=1, disk=QUICK_DISK, log=sink)


def lived(folder: Path) -> History:
    """A life with a snapshot whenever a segment is closed, as the service has it made."""
    engine, last = new_engine(), BEFORE_FIRST
    states: dict[int, bytes] = {}
    earlier: dict[str, list[bytes]] = {}
    with closing(journal_in(folder)) as journal:
        journal.open()
        for number in range(ENTRIES):
            closed = journal.closed()
            last = journal.append(last, step(engine, number)).last
            states[last.seq] = image(engine)
            if journal.closed() != closed:
                snapshot(folder, journal)
            for name, data in contents(folder).items():
                earlier.setdefault(name, []).append(data)
    files = contents(folder)
    return History(
        files, states, {name: list(dict.fromkeys(earlier[name]) - {files[name]: 0}.keys()) for name in files}
    )


def step(engine: Engine, number: int) -> bytes:
    """One more change or three, as the entry that the executor would write."""
    rows = add_keys(engine, "p", [f"k{number}"]) if number % 2 else add(engine, "p")
    write(engine, "p", rows, ["x"])
    payload = msgspec.msgpack.encode(engine.log)
    engine.log.clear()
    return payload


def snapshot(folder: Path, journal: FileJournal) -> None:
    """What core/runtime/compact.py does, and after it the executor."""
    beside = journal_in(folder)
    beside.look_beside(journal.closed())
    engine = new_engine()
    _, last = replay(engine, beside)
    beside.save(last, image(engine))
    journal.tidy()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def laid_out(folder: Path, files: dict[str, bytes]) -> Path:
    """The folder with these files and no others."""
    folder.mkdir(exist_ok=True)
    there = contents(folder)
    for name in there.keys() - files.keys():
        (folder / name).unlink()
    for name, data in files.items():
        if there.get(name) != data:
            (folder / name).write_bytes(data)
    return folder


def started(folder: Path) -> Started | str:
    """What a start makes of it, or the line with which it refuses."""
    log: list[str] = []
    with closing(journal_in(folder, log)) as journal:
        try:
            journal.open()
            engine = new_engine()
            _, last = replay(engine, journal)
        except JournalError as refusal:
            return str(refusal)
    return Started(last.seq, image(engine), log)


@lru_cache(8)
def _settings(folder: Path) -> Settings:
    return load(["--journal", f"file://{folder}"], {})


def verified(folder: Path) -> tuple[int, str]:
    """The status and the one line of `scripts/serve --verify`."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = verify(_settings(folder))
    (line,) = said.getvalue().splitlines()
    return status, line.removeprefix("batchmeta: ")
