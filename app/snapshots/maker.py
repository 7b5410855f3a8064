"""The program that makes snapshots and checkpoints: it waits for its turn, does its work, and ends with the service.

At most one works in a journal's folder. Its standard input is a pipe that ends with the service that began it, so a
killed service takes its maker with it. Nothing heavy is imported until it is its turn.
"""

import os
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

from core.journal import JournalError
from core.journal.folder import REAL_DISK, Folder

ABANDONED = 3


def end_with_parent() -> None:
    """From now on this process ends at once when its standard input does, whatever it is doing: a kill may too."""
    threading.Thread(target=_watch, name="parent", daemon=True).start()


def _watch() -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(ABANDONED)


def main(arguments: list[str]) -> int:
    """The exit status. Waits while the maker of a service before this one is still there."""
    end_with_parent()
    with ExitStack() as owned:
        try:
            Folder(Path(arguments[0]), REAL_DISK).take_turn(owned)
        except JournalError as error:
            sys.stderr.write(f"{error}\n")
            return 1
        from .maker_work import main as make

        return make(arguments)


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
