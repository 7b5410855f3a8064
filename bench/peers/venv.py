"""The peers' venvs: made once each, by package name, in a cache folder outside the checkout. Nothing of ours goes in.

Where our client and a peer must be in one process, a second venv has the client of this checkout and sees the peer's
packages too. A marker written last says that a venv is complete; whatever lacks it, or was made from other
requirements, is made anew.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

Log = Callable[[str], None]

# torch goes in first and pinned: left to the peer's open-ended wish, pip may fetch gigabytes for a GPU not here.
TORCH = "torch==2.13.0"
MARKER = "complete.txt"
CHECKOUT = Path(__file__).resolve().parents[2]
# What a venv gets to run on both planes: openYuanrong is the second storage backend.
OURS = (f"-e {CHECKOUT / 'client'}[fast]", "openyuanrong-datasystem==0.8.1")


class PeerMissing(Exception):
    """A peer cannot be had on this machine; the message is one line that says why."""


def python_of(name: str, version: str, log: Log) -> Path:
    """The interpreter of the venv that holds `name` at `version`, made if need be. Raises PeerMissing."""
    return _made(cache_folder() / f"{name}-{version}", (TORCH, f"{name}=={version}"), f"{name} {version}", log)


def python_with_ours(name: str, version: str, log: Log) -> Path:
    """The interpreter of a venv with our client that sees the packages of the peer's own. Raises PeerMissing."""
    peer = python_of(name, version, log).parents[1]
    # One for each checkout, since the client in it is that of the checkout.
    folder = cache_folder() / f"{name}-{version}+batchmeta-{zlib.crc32(str(CHECKOUT).encode()):08x}"
    return _made(folder, OURS, f"{name} {version} with batchmeta", log, on=peer)


def _made(folder: Path, requirements: Sequence[str], peer: str, log: Log, on: Path | None = None) -> Path:
    try:
        with _locked(folder):
            if not _is_complete(folder, requirements):
                _make(folder, requirements, peer, log, on)
    except OSError as error:
        raise PeerMissing(f"{peer} cannot be installed: {error}") from error
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
    return marker.exists() and marker.read_text().splitlines() == list(requirements) and _python(folder).exists()


def _make(folder: Path, requirements: Sequence[str], peer: str, log: Log, on: Path | None) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    log(f"making a venv for {peer} in {folder} (once; a few minutes)")
    _run([sys.executable, "-m", "venv", str(folder)], peer)
    if on is not None:
        # A path file: a second copy of the packages would take a gigabyte.
        (_packages(folder) / "peer.pth").write_text(f"{_packages(on)}\n")
    for requirement in requirements:
        log(f"installing {requirement}")
        words = requirement.split(" ", 1)
        _run([str(_python(folder)), "-m", "pip", "install", "--disable-pip-version-check", *words], peer)
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


def _packages(folder: Path) -> Path:
    return next((folder / "lib").glob("python*/site-packages"))
