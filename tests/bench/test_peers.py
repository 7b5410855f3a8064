"""The pipe to a peer and the making of its venv, with a fake child and a fake pip: no network, no TransferQueue."""

import ast
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import profile
from bench.peers import peer as peer_module
from bench.peers import venv
from bench.peers.peer import CHILD, Peer, PeerFailed, PeerMissing, Rate

ROOT = Path(__file__).parent.parent.parent
DEADLINE_S = 60
# It speaks the pipe, and has a child that left its session, holds its stdout and outlives it, as a daemon may.
FAKE_CHILD = """
import json, os, subprocess, sys, time
daemon = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
def time_case(case, rows, calls):
    if case == "hang":
        time.sleep(600)
    if case == "noise":
        print("no JSON")
    if case == "die":
        print("warming up", "RuntimeError: out of luck", "", sep="\\n", file=sys.stderr, flush=True)
        os._exit(7)
    return {"seconds": [rows / 1000] * calls}
verbs = {
    "versions": lambda: {"versions": {"pids": f"{os.getpid()} {daemon.pid}"}},
    "load": lambda profile, rows: {} if rows <= 8 else {"error": f"ValueError: {profile} has 8 rows, not {rows}"},
    "result": lambda rows: {"keys": ["k"] * rows},
    "time": time_case,
    "rate": lambda case, seconds, at_once: {"calls_per_s": at_once / seconds, "calls": at_once},
}
for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps(verbs[request.pop("do")](**request)), flush=True)
"""
# In place of Python: makes a "venv" that holds itself, and of packages knows all but those of version 9.9.
FAKE_PYTHON = """#!/bin/sh
if [ "$2" = venv ]; then mkdir -p "$3/bin" "$3/lib/python3.0/site-packages" && cp "$0" "$3/bin/python"; exit; fi
for last; do :; done
echo "$last" >> INSTALLED
case "$last" in
    *==9.9) printf 'Collecting it\\nERROR: no such version of %s\\n\\n[notice] a new pip\\n' "$last"; exit 1 ;;
esac
"""


@pytest.fixture
def child(tmp_path: Path) -> list[str]:
    path = tmp_path / "child.py"
    path.write_text(FAKE_CHILD)
    return [sys.executable, str(path)]


@pytest.fixture
def peer(child: list[str]) -> Iterator[Peer]:
    with Peer("Fake 1.0", child) as started:
        yield started


def pids_of(peer: Peer) -> list[int]:
    return [int(pid) for pid in peer.versions()["pids"].split()]


def all_gone(pids: list[int]) -> bool:
    """Ended, whether or not yet reaped by whoever inherited them."""
    end = time.monotonic() + DEADLINE_S
    while any(_runs(pid) for pid in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_every_call_goes_through_the_pipe(peer: Peer, tmp_path: Path) -> None:
    peer.load(tmp_path / "profile.json", 8)
    assert peer.result(3) == {"keys": ["k", "k", "k"]}
    assert peer.time("generate", 512, 2) == [0.512, 0.512]
    assert peer.rate("put", 2, 64) == Rate(32.0, 64)


def test_an_error_of_the_peer_is_one_line_and_the_next_call_works(peer: Peer) -> None:
    with pytest.raises(
        PeerFailed, match=r"^Fake 1\.0 could not do `load`: ValueError: /data/p\.json has 8 rows, not 9$"
    ):
        peer.load(Path("/data/p.json"), 9)
    assert peer.time("encode", 1, 1) == [0.001]


def test_a_child_that_dies_is_one_clear_error_then_and_later(peer: Peer) -> None:
    with pytest.raises(
        PeerFailed, match=r"^Fake 1\.0 died at `time die` \(exit status 7, RuntimeError: out of luck\)$"
    ):
        peer.time("die", 1, 1)  # type: ignore[arg-type]
    with pytest.raises(PeerFailed, match="died at `result`"):
        peer.result(1)


def test_a_child_that_is_killed_is_named_with_its_signal(peer: Peer) -> None:
    os.kill(pids_of(peer)[0], signal.SIGKILL)
    with pytest.raises(PeerFailed, match=r"died at `rate claim` \(exit status -9\)"):
        peer.rate("claim", 1, 1)


def test_an_answer_that_is_no_json_is_said_so(peer: Peer) -> None:
    with pytest.raises(PeerFailed, match="answered `time noise` with what is no JSON: b'no JSON"):
        peer.time("noise", 1, 1)  # type: ignore[arg-type]


def test_a_peer_that_does_not_answer_is_given_up_and_ended(child: list[str]) -> None:
    with Peer("Fake 1.0", child, answer_s=DEADLINE_S) as peer:
        pids = pids_of(peer)
        peer._answer_s = 0.05
        with pytest.raises(PeerFailed, match=r"did not answer `time hang` in 0\.05 s"):
            peer.time("hang", 1, 1)  # type: ignore[arg-type]
        assert all_gone(pids)
        with pytest.raises(PeerFailed, match="died at `versions`"):
            peer.versions()


def test_close_leaves_no_process_behind_and_may_be_repeated(child: list[str]) -> None:
    peer = Peer("Fake 1.0", child)
    pids = pids_of(peer)
    assert len({os.getsid(pid) for pid in [*pids, os.getpid()]}) == 3
    peer.close()
    assert all_gone(pids)
    peer.close()
    with pytest.raises(PeerFailed, match="died at `versions`"):
        peer.versions()


def test_a_child_that_ignores_the_end_of_the_pipe_is_killed(child: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_module, "END_S", 0.2)
    peer = Peer("Fake 1.0", child)
    pids = pids_of(peer)
    peer._requests.write(b'{"do": "time", "case": "hang", "rows": 1, "calls": 1}\n')
    peer.close()
    assert all_gone(pids)


def test_ctrl_c_ends_us_and_leaves_no_process_behind(child: list[str]) -> None:
    script = f"""
from bench.peers.peer import Peer, END_S
from bench.peers import peer as module
module.END_S = 0.2
with Peer("Fake 1.0", {child!r}) as peer:
    print(peer.versions()["pids"], flush=True)
    peer.time("hang", 1, 1)
"""
    ours = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert ours.stdout is not None
    pids = [int(pid) for pid in ours.stdout.readline().split()]
    assert len(pids) == 2
    ours.send_signal(signal.SIGINT)
    _, errors = ours.communicate(timeout=DEADLINE_S)
    assert errors.strip().endswith(b"KeyboardInterrupt")
    assert all_gone(pids)


def test_a_lock_that_ctrl_c_left_held_in_popen_does_not_hold_up_the_end(
    child: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_module, "END_S", 0.2)
    peer = Peer("Fake 1.0", child)
    pids = pids_of(peer)
    lock = peer._process._waitpid_lock  # type: ignore[attr-defined]
    lock.acquire()
    peer.close()
    lock.release()
    peer._process.wait(DEADLINE_S)
    assert all_gone(pids)


def test_starting_asks_the_child_whether_it_is_there(child: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_module, "python_of", lambda *_: Path(child[0]))
    monkeypatch.setattr(peer_module, "CHILD", Path(child[1]))
    with Peer.start("1.0", print) as peer:
        assert peer.name == "TransferQueue 1.0"
        assert len(pids_of(peer)) == 2


def test_a_peer_whose_package_does_not_load_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "child.py").write_text("import a_package_that_is_not_there")
    monkeypatch.setattr(peer_module, "python_of", lambda *_: Path(sys.executable))
    monkeypatch.setattr(peer_module, "CHILD", tmp_path / "child.py")
    with pytest.raises(
        PeerMissing, match=r"^TransferQueue 1\.0 died at .*No module named 'a_package_that_is_not_there'\)$"
    ):
        Peer.start("1.0", print)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and a Python that installs nothing."""
    python = tmp_path / "python"
    python.write_text(FAKE_PYTHON.replace("INSTALLED", str(tmp_path / "installed")))
    python.chmod(0o755)
    monkeypatch.setattr(venv, "sys", SimpleNamespace(executable=str(python)))
    monkeypatch.setenv("BATCHMETA_BENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def installed(cache: Path) -> list[str]:
    return cache.with_name("installed").read_text().split()


def test_a_venv_is_made_once_torch_first(cache: Path) -> None:
    told: list[str] = []
    python = venv.python_of("TransferQueue", "1.0", told.append)
    assert python == cache / "TransferQueue-1.0" / "bin" / "python"
    assert installed(cache) == ["torch==2.13.0", "TransferQueue==1.0"]
    assert [line.split()[0] for line in told] == ["making", "installing", "installing"]
    told.clear()
    assert venv.python_of("TransferQueue", "1.0", told.append) == python
    assert told == []
    assert len(installed(cache)) == 2


def test_a_version_that_is_not_there_is_missing_in_one_line(cache: Path) -> None:
    with pytest.raises(PeerMissing) as caught:
        venv.python_of("TransferQueue", "9.9", print)
    assert str(caught.value) == ("TransferQueue 9.9 cannot be installed: ERROR: no such version of TransferQueue==9.9")


def test_a_making_that_was_interrupted_is_done_anew(cache: Path) -> None:
    half = cache / "TransferQueue-1.0"
    (half / "bin").mkdir(parents=True)
    (half / "bin" / "python").touch()
    venv.python_of("TransferQueue", "1.0", lambda _: None)
    assert len(installed(cache)) == 2
    assert (half / "bin" / "python").stat().st_size > 0


def test_a_venv_of_other_pins_is_made_anew(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv.python_of("TransferQueue", "1.0", lambda _: None)
    monkeypatch.setattr(venv, "TORCH", "torch==3.0")
    venv.python_of("TransferQueue", "1.0", lambda _: None)
    assert installed(cache)[2:] == ["torch==3.0", "TransferQueue==1.0"]


def test_a_venv_with_ours_sees_the_packages_of_the_peer_which_stays_as_it_is(cache: Path) -> None:
    python = venv.python_with_ours("TransferQueue", "1.0", lambda _: None)
    ours, theirs = python.parents[1], cache / "TransferQueue-1.0"
    assert ours.parent == cache
    assert ours.name.startswith("TransferQueue-1.0+batchmeta-")
    packages = "lib/python3.0/site-packages"
    assert (ours / packages / "peer.pth").read_text() == f"{theirs / packages}\n"
    assert [*(theirs / packages).iterdir()] == []
    assert installed(cache)[2:] == [f"{ROOT}/client[fast]", "openyuanrong-datasystem==0.8.1"]
    assert venv.python_with_ours("TransferQueue", "1.0", print) == python
    assert len(installed(cache)) == 4


def test_a_venv_with_ours_of_a_peer_that_is_not_there_is_missing(cache: Path) -> None:
    with pytest.raises(PeerMissing, match=r"^TransferQueue 9\.9 cannot be installed"):
        venv.python_with_ours("TransferQueue", "9.9", print)


def test_a_cache_that_cannot_be_written_is_a_missing_peer(cache: Path) -> None:
    cache.write_text("a file, where a folder should be")
    with pytest.raises(PeerMissing, match=r"^TransferQueue 1\.0 cannot be installed: .*"):
        venv.python_of("TransferQueue", "1.0", print)


def test_the_cache_is_in_the_users_cache_unless_said_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BATCHMETA_BENCH_CACHE", raising=False)
    monkeypatch.setenv("HOME", "/home/someone")
    assert venv.cache_folder() == Path("/home/someone/.cache/batchmeta-bench")


def test_the_peer_claims_the_fields_that_we_claim() -> None:
    """Its script can import nothing of ours, so the names stand there once more."""
    (found,) = [
        ast.literal_eval(node.value)
        for node in ast.parse(CHILD.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CLAIMED"
    ]
    assert tuple(found) == profile.CLAIMED
