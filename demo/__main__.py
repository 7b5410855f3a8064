"""The command line of the demo: `python -m demo`, or ./scripts/demo, which sets everything up first.

Exit status: 0 it adds up, 1 it does not or something failed, 2 wrong use or no storage, 130 stopped by Ctrl-C.
"""

import argparse
import signal
import sys
from collections.abc import Sequence

from rich.console import Console

from batchmeta import BatchmetaError
from crew.members import CrewFailed
from crew.processes import StartFailed
from crew.storage import StorageUnavailable

from .chaos import run_chaos
from .samples import Step
from .step import Settings, run_step

INTERRUPTED = 130


def parse(arguments: Sequence[str] | None = None) -> Settings:
    """Settings from the command line; exits with status 2 and one line where they are wrong."""
    default = Step()
    parser = argparse.ArgumentParser(
        prog="demo", description="One GRPO step with real processes on the service and a storage backend."
    )
    parser.add_argument("--prompts", type=_positive, default=default.prompts, help="prompts in the step (64)")
    parser.add_argument("--answers", type=_positive, default=default.answers, help="answers to each prompt (8)")
    parser.add_argument("--workers", type=_positive, default=8, help="rollout processes (8)")
    parser.add_argument("--storage", choices=("yuanrong", "memory"), default="yuanrong", help="where the bytes go")
    parser.add_argument("--seed", type=int, default=default.seed, help="seed of the data, and of the deaths (0)")
    parser.add_argument("--max-len", type=_positive, default=default.max_len, help="longest answer in tokens (8000)")
    parser.add_argument("--url", help="use a service that runs already, instead of starting one")
    parser.add_argument("--chaos", action="store_true", help="kill workers, ranks, the actor and once the service")
    given = parser.parse_args(arguments)
    if given.chaos and given.url:
        parser.error("--chaos kills the service, so it starts one of its own: leave out --url")
    step = Step(given.prompts, given.answers, given.seed, given.max_len)
    return Settings(step, given.workers, given.storage, given.url, given.chaos)


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


def main() -> int:
    settings, console = parse(), Console()
    for caught in (signal.SIGINT, signal.SIGTERM):
        signal.signal(caught, _stop)
    try:
        run = run_chaos if settings.has_chaos else run_step
        return 0 if run(settings, console) else 1
    except KeyboardInterrupt:
        console.print("stopped; the service and the storage are down again")
        return INTERRUPTED
    except StorageUnavailable as error:
        console.print(f"demo: {error}", markup=False, highlight=False, soft_wrap=True)
        return 2
    except (CrewFailed, StartFailed, BatchmetaError) as error:
        console.print(f"demo: {error}", markup=False, highlight=False, soft_wrap=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())
