"""The command line of the benchmark: `python -m bench`, or ./scripts/bench, which sets everything up first.

Exit status: 0 all that must be reached was, 1 not or something failed, 2 wrong use, 130 stopped by Ctrl-C.
"""

import argparse
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from rich.console import Console

from crew.processes import StartFailed

from .child import ChildFailed, prepare
from .results import Results, Unwritable
from .scale import FULL, QUICK, SMOKE, Scale

INTERRUPTED = 130
FOLDER = Path("build/bench")


class Parser(argparse.ArgumentParser):
    """Tells what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        """Status 2."""
        sys.stderr.write(f"bench: {message}; --help shows all flags\n")
        sys.exit(2)


def parser() -> Parser:
    """All flags."""
    made = Parser(prog="bench", description="batchmeta against TransferQueue, judged on ratios.", allow_abbrev=False)
    made.add_argument("--only", action="append", default=[], metavar="NAME", help="run this case; repeatable")
    made.add_argument("--quick", action="store_true", help="fewer rounds and calls: a first look")
    made.add_argument("--smoke", action="store_true", help="ours alone, tiny, no time judged: does it run?")
    made.add_argument("--list", action="store_true", help="name the cases and what each measures")
    made.add_argument("--profile", metavar="CASE", help="a flame graph and the share of each layer under one load")
    made.add_argument("--out", type=Path, help="results file (build/bench/SCALE.json), or the folder of a profile")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status."""
    given, console = parser().parse_args(arguments), Console()
    prepare()
    from .cases import CASES  # the engine comes with these: --help and a wrong flag do without
    from .sampled import LOADS

    known = list(LOADS) if given.profile else [case.name for case in CASES]
    unknown = [name for name in [given.profile, *given.only] if name and name not in known]
    if unknown:
        return _say(f"there is no case {unknown[0]!r}: use {', '.join(known)}", 2)
    if given.list:
        sys.stdout.write("".join(f"{case.name:14} {case.measures}\n" for case in CASES))
        return 0
    scale = SMOKE if given.smoke else QUICK if given.quick else FULL
    if given.profile:
        return sample(scale, given.profile, given.out or FOLDER, console)
    return run(scale, given.only, given.out or FOLDER / f"{scale.name}.json", console)


def run(scale: Scale, only: Sequence[str], path: Path, console: Console) -> int:
    """Measure, keep, report; the exit status. What goes wrong is one line."""
    from .cases import CASES
    from .conduct import chosen, conduct
    from .peers.peer import Peer

    def measure() -> int:
        results = Results(path, scale, keep=bool(only))
        start = Peer.start if scale.is_judged else None
        is_met = conduct(chosen(CASES, only, scale), results, scale, start, console)
        return _finish(results, scale, is_met, [case.name for case in CASES])

    return _one_line(measure, f"; cases that ended are kept in {path}: go on with --only NAME for each of the others")


def sample(scale: Scale, name: str, folder: Path, console: Console) -> int:
    """Profile one load; the exit status. What goes wrong is one line."""
    from .conduct import placed
    from .sampled import profile

    def measure() -> int:
        with console.status("") as status, placed(scale, folder, None, status.update) as place:
            written = profile(place, name, folder, console)
        sys.stdout.write("".join(f"wrote {path}\n" for path in written))
        return 0

    return _one_line(measure)


def _one_line(measure: Callable[[], int], way_on: str = "") -> int:
    """The status of what was measured, or of what went wrong, which is told in one line."""
    from .cases.equality import ResultsDiffer
    from .peers.peer import PeerFailed
    from .sampled import ProfileFailed
    from .wrk import WrkFailed, WrkMissing

    try:
        with _stoppable():
            return measure()
    except KeyboardInterrupt:
        return _say(f"stopped{way_on}", INTERRUPTED)
    except Unwritable as error:
        return _say(str(error), 2)
    except (ChildFailed, PeerFailed, ProfileFailed, ResultsDiffer, StartFailed, WrkFailed, WrkMissing) as error:
        return _say(f"{' '.join(str(error).split())}{way_on}", 1)


def _finish(results: Results, scale: Scale, is_met: bool, names: list[str]) -> int:
    if scale is FULL and all(name in results.found["cases"] for name in names):
        from .report import publish

        publish(results.path)
    sys.stdout.write(f"results: {results.path}\n")
    return 0 if is_met or not scale.is_judged else 1


def _say(text: str, status: int) -> int:
    sys.stderr.write(f"bench: {text}\n")
    return status


@contextmanager
def _stoppable() -> Iterator[None]:
    """SIGTERM is Ctrl-C."""
    before = {caught: signal.signal(caught, _stop) for caught in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for caught, handler in before.items():
            signal.signal(caught, handler)


def _stop(*_: object) -> None:
    # The first signal unwinds, so that everything started is stopped; a second one must not cut that short.
    for caught in (signal.SIGINT, signal.SIGTERM):
        signal.signal(caught, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
