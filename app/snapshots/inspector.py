"""The program that reads a checkpoint's file through: in a process of its own, so that a large state, or bytes made to
fill the memory, do not hold up or end the service. It ends with the service.

Argument: the file. It writes one line, JSON: the `revision` of the state that the file holds, or why it is `refused`.
"""

import os
import sys
from pathlib import Path

import msgspec

from core.errors import CheckpointCorrupt
from core.snapshot import checkpoint_file

from .inspection import Found
from .maker import end_with_parent

URGENT = 5  # somebody waits


def main(arguments: list[str]) -> int:
    """0, whatever the file is."""
    end_with_parent()
    os.nice(URGENT)
    try:
        found = Found(revision=checkpoint_file.read(Path(arguments[0])).revision)
    except CheckpointCorrupt as error:
        found = Found(refused=error.detail)
    sys.stdout.buffer.write(msgspec.json.encode(found))
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
