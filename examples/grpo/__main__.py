"""The command line of the training: `python -m examples.grpo`, or ./scripts/grpo, which sets everything up first.

The last line is JSON (outcome.py). Exit status: 0 it has learned and the account is right, 1 one of the two is not so
or something failed, 2 wrong use or no storage, 130 stopped by Ctrl-C.
"""

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from .run import Settings

INTERRUPTED = 130
QUICK = {"steps": 100, "prompts": 8, "digits": 3, "keep_every": 25}


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line; exits with status 2 and one line where it is wrong."""
    parser = argparse.ArgumentParser(prog="grpo", description="Train a small transformer with GRPO on the service.")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller steps, and three digits to sort")
    parser.add_argument("--chaos", action="store_true", help="kill workers, the trainer and once the service")
    parser.add_argument("--storage", choices=("openyuanrong", "files"), default="files", help="where the bytes go")
    parser.add_argument("--seed", type=int, default=0, help="seed of weights, prompts, draws and deaths (0)")
    parser.add_argument("--steps", type=_positive, help="steps of the optimizer")
    parser.add_argument("--folder", type=Path, help="keep the run's state here (default: a temporary folder)")
    parser.add_argument("--resume", action="store_true", help="go on with the run in --folder, from its checkpoints")
    parser.add_argument("--plot", type=Path, default=Path("data/grpo.png"), help="where the plot goes: .png or .svg")
    parser.add_argument("--zero-advantages", action="store_true", help="train without a signal, to see it not learn")
    given = parser.parse_args(arguments)
    _check(parser, given)
    return given


def _check(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    if given.seed < 0:
        parser.error(f"argument --seed: must be at least 0, not {given.seed}")
    if given.plot.suffix not in (".png", ".svg"):
        parser.error(f"argument --plot: must end with .png or .svg, not {given.plot}")
    if given.resume and (given.folder is None or not given.folder.is_dir()):
        parser.error("--resume goes on with an earlier run: name its folder with --folder")
    if given.resume and given.storage != "files":
        parser.error("--resume needs --storage files: the bytes of an openYuanrong worker end with it")
    if not given.resume and given.folder and given.folder.exists() and any(given.folder.iterdir()):
        parser.error(f"{given.folder} is not empty: go on with the run there by --resume, or name another folder")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def _stop(*_: object) -> None:
    # The first signal unwinds, so that everything started is stopped; a second one must not cut that short.
    for caught in (signal.SIGINT, signal.SIGTERM):
        signal.signal(caught, signal.SIG_IGN)
    raise KeyboardInterrupt


def _settings(given: argparse.Namespace, folder: Path) -> "Settings":
    from .job import Job
    from .run import Settings

    size = dict(QUICK) if given.quick else {}
    if given.steps:
        size["steps"] = given.steps
        size["keep_every"] = max(1, given.steps // 4)
    job = Job(folder, given.seed, has_zero_advantages=given.zero_advantages, **size)
    return Settings(job, "files" if given.storage == "files" else "yuanrong", given.chaos, given.resume, given.plot)


def main() -> int:
    given, console = parse(), Console()
    for caught in (signal.SIGINT, signal.SIGTERM):
        signal.signal(caught, _stop)
    # Loaded here: the processes of a run import this module too, and torch takes seconds.
    from batchmeta import BatchmetaError
    from crew.members import CrewFailed
    from crew.processes import StartFailed
    from crew.storage import StorageUnavailable

    from .run import run
    from .together import NothingToResume

    try:
        with ExitStack() as stack:
            named = given.folder or stack.enter_context(tempfile.TemporaryDirectory(prefix="batchmeta-grpo-"))
            settings = _settings(given, Path(named))
            result = run(settings, console)
    except KeyboardInterrupt:
        console.print("stopped; the service and the storage are down again")
        return INTERRUPTED
    except (StorageUnavailable, NothingToResume) as error:
        console.print(f"grpo: {error}", markup=False, highlight=False, soft_wrap=True)
        return 2
    except (CrewFailed, StartFailed, BatchmetaError) as error:
        console.print(f"grpo: {error}", markup=False, highlight=False, soft_wrap=True)
        return 1
    faults = result.faults(settings.job)
    for fault in faults:
        console.print(f"grpo: {fault}", markup=False, highlight=False, soft_wrap=True)
    sys.stdout.write(result.line() + "\n")
    return 0 if result.has_learned and not faults else 1


if __name__ == "__main__":
    sys.exit(main())
