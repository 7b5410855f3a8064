"""The peers' venvs: made once each, by package name, in a cache folder outside the checkout. Nothing of ours goes in.

A marker written last says that a venv is complete; whatever lacks it, or was made from other pins, is made anew.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

Log = Callable[[str], None]

# torch goes in first and pinned: left to the peer's open-ended wish, pip may fetch gigabytes for a GPU not here.
TORCH = "torch==2.13.0"
MARKER = "complete.txt"


class PeerMissing(Exception):
    """A peer cannot be had on this machine; the message is one line that says why."""


def python_of(name: str, version: str, log: Log) -> Path:
    """The interpreter of the venv that holds `name` at `version`, made if need be. Raises PeerMissing."""
    folder = cache_folder() / f"{name}-{version}"
    requirements = (TORCH, f"{name}=={version}")
    try:
        with _locked(folder):
            if not _is_complete(folder, requirements):
                _make(folder, requirements, f"{name} {version}", log)
    except OSError as error:
        raise PeerMissing(f"{name} {version} cannot be installed: {error}") from error
    return _python(folder)


def cache_folder() -> Path:
    """`$BATCHMETA_BENCH_CACHE`, or a folder in the user's cache."""
    chosen = os.environ.get("BATCHMETA_BENCH_CACHE")
    return Path(chosen).absolute() if chosen else Path.home() / ".cache" / "batchmeta-bench"


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Two benchmarks at once make a venv once; the lock ends with its process, whatever happens to that."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_complete(folder: Path, requirements: Sequence[str]) -> bool:
    marker = folder / MARKER
    return marker.exists() and marker.read_text().split() == list(requirements) and _python(folder).exists()


def _make(folder: Path, requirements: Sequence[str], peer: str, log: Log) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    log(f"making a venv for {peer} in {folder} (once; a few minutes)")
    _run([sys.executable, "-m", "venv", str(folder)], peer)
    for requirement in requirements:
        log(f"installing {requirement}")
        _run([str(_python(folder)), "-m", "pip", "install", "--disable-pip-version-check", requirement], peer)
    (folder / MARKER).write_text("\n".join(requirements) + "\n")


def _run(command: Sequence[str], peer: str) -> None:
    done = subprocess.run(  # noqa: S603  # the commands are ours
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        raise PeerMissing(f"{peer} cannot be installed: {_reason(done.stdout)}")


def _reason(output: str) -> str:
    """The last line in which pip names an error, or its last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return next(
        (line for line in reversed(lines) if line.startswith("ERROR")), lines[-1] if lines else "no reason given"
    )


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"
