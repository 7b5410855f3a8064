"""Starts the service. Settings are read before anything heavy is imported: a wrong one is told at once."""

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from .settings import VERIFY, SettingsRefused, load

INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """Runs until told to stop, or with --verify looks through the data folder; the exit status."""
    try:
        settings = load([argument for argument in arguments if argument != VERIFY], os.environ)
    except SettingsRefused as error:
        return _refuse(error)
    logging.basicConfig(level=settings.log_level.upper(), format="%(levelname)s %(message)s")
    if VERIFY in arguments:
        from .verify import verify

        return verify(settings)
    from .process import StartRefused, serve

    try:
        return serve(settings)
    except StartRefused as error:
        return _refuse(error)


def _refuse(error: Exception) -> int:
    print(f"batchmeta: {error}", file=sys.stderr)  # noqa: T201  (one clear line is the contract of a failed start)
    return 2


def _end(status: int) -> NoReturn:
    """All is closed by now. The interpreter's own way out takes seconds where torch is loaded, and a stop has five."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # nobody reads it any more
            stream.flush()
    os._exit(status)


def _stop_at_once() -> None:
    """A Ctrl-C before the server has its own handler, as in the seconds of its imports: nothing is to be closed yet."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))


if __name__ == "__main__":
    _stop_at_once()
    _end(main(sys.argv[1:]))
