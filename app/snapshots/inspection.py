"""Has a file looked through by the inspector (inspector.py), a process beside the service, and tells what it found."""

import asyncio
import sys
from pathlib import Path
from subprocess import PIPE, Popen

import msgspec

from core.errors import CheckpointCorrupt

from .compaction import ROOT


class Found(msgspec.Struct, kw_only=True):
    """What the inspector says of a file: the revision of its state, or why it is no checkpoint."""

    revision: int = 0
    refused: str | None = None


async def inspected(path: Path) -> int:
    """The revision of the state in a file. Raises CheckpointCorrupt."""
    process = await asyncio.to_thread(_started, path)
    try:
        found = await asyncio.to_thread(_said, process)
    except asyncio.CancelledError:
        process.kill()
        raise
    if found.refused is not None:
        raise CheckpointCorrupt(f"what was sent is no checkpoint of this version: {_without(path, found.refused)}")
    return found.revision


def _started(path: Path) -> "Popen[bytes]":
    # As the maker's: not by the loop, and its input ends with this process.
    command = (sys.executable, "-m", f"{__package__}.inspector", str(path.resolve()))
    return Popen(command, cwd=ROOT, stdin=PIPE, stdout=PIPE)  # noqa: S603  (our own module)


def _said(process: "Popen[bytes]") -> Found:
    with process:
        said = process.stdout.read() if process.stdout else b""
    if process.returncode != 0 or not said:
        return Found(refused=f"it could not be read (status {process.returncode}; is there memory for its state?)")
    return msgspec.json.decode(said, type=Found)


def _without(path: Path, detail: str) -> str:
    """The file aside has a name that nobody knows."""
    return (
        detail.replace(f"{path.resolve()}, ", "")
        .replace(f"{path.resolve()}: ", "")
        .removesuffix("; restore another one")
    )
