"""How the service ends and comes back: asked to stop, killed, started twice, started wrongly. Real processes only."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from tests.conftest import DEADLINE_S, NO_TLS, ROOT, ServerProcess, refused_start

from .service import Api

WAITING = 200


def journal(folder: Path) -> tuple[str, str]:
    return ("--journal", f"file://{folder}/journal")


def one_line(*arguments: str, env: dict[str, str] | None = None) -> str:
    """All that a start which cannot be says; its status is not 0."""
    status, lines = refused_start(*arguments, env=env)
    assert status != 0
    assert len(lines) == 1, lines
    return lines[0]


async def wait_for_parked(url: str, http: httpx.AsyncClient, count: int) -> list[asyncio.Task[httpx.Response]]:
    """Claims that wait, once all of them have been sent and a later call was answered."""
    body = {"fields": ["f"], "batch_size": 1, "wait_s": 60}
    tasks = [
        asyncio.create_task(http.post(f"{url}/v1/partitions/p/tasks/t{i}/claims", json=body)) for i in range(count)
    ]
    deadline = time.monotonic() + 30
    while len(connections(url)) < count and time.monotonic() < deadline:
        await http.get(f"{url}/healthz")
    for _ in range(3):
        await http.get(f"{url}/v1/server")
    assert not any(task.done() for task in tasks)
    return tasks


def connections(url: str) -> list[str]:
    """Established connections to the server's port, by the kernel's own table."""
    port = f"{int(url.rsplit(':', 1)[1]):04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [row[1] for row in rows if row[1].endswith(f":{port}") and row[3] == "01"]


@pytest.mark.asyncio
async def test_sigterm_answers_200_waiting_calls_at_once_and_exits_0_within_5_seconds(tmp_path: Path) -> None:
    server = ServerProcess(*journal(tmp_path))
    limits = httpx.Limits(max_connections=WAITING + 10)
    async with httpx.AsyncClient(limits=limits, timeout=60) as http:
        waiting = await wait_for_parked(server.url, http, WAITING)
        started = time.monotonic()
        status = await asyncio.to_thread(server.stop)
        took = time.monotonic() - started
        replies = await asyncio.gather(*waiting)
    assert {reply.status_code for reply in replies} == {503}
    assert {reply.json()["code"] for reply in replies} == {"not-ready"}
    assert all(reply.headers["retry-after"] for reply in replies)
    assert status == 0
    assert took < 5


def test_sigkill_loses_no_acknowledged_change_and_no_index_is_given_twice(tmp_path: Path) -> None:
    server = ServerProcess(*journal(tmp_path))
    acknowledged: dict[str, int] = {}
    api = Api(server.url)
    for i in range(150):
        acknowledged[f"k{i}"] = api.produce([f"k{i}"], "f", custom_meta=[{"i": i}])["global_indexes"][0]
    api.ok("POST", "samples/delete", {"keys": ["k149"]})
    claimed = api.claim("f", size=3).json()["batch"]["global_indexes"]
    before = api.dump()
    api.http.close()
    server.kill()

    again = ServerProcess(*journal(tmp_path))
    after = Api(again.url)
    after.name, after.path = api.name, api.path
    try:
        assert after.dump() == before
        listed = {line["key"]: line["global_index"] for line in after.ok("GET", "keys")["keys"]}
        assert listed == {key: index for key, index in acknowledged.items() if key != "k149"}
        assert after.claim("f", size=3).json()["batch"]["global_indexes"] != claimed
        assert after.insert("new")[0] > max(acknowledged.values())
    finally:
        after.http.close()
        assert again.stop() == 0


def test_a_stop_and_a_start_change_nothing(tmp_path: Path) -> None:
    first = ServerProcess(*journal(tmp_path))
    api = Api(first.url)
    api.produce(["a", "b"], "f", group_ids=["g", 7], backend_meta={"f": ["x", None]}, custom_meta=[{"n": 1.5}, {}])
    api.ok("PATCH", "custom-meta", {"keys": ["a"], "custom_meta": [{"n": None, "m": {"x": [1]}}]})
    before = api.dump()
    api.http.close()
    assert first.stop() == 0
    second = ServerProcess(*journal(tmp_path))
    api.url, api.http = second.url, httpx.Client(base_url=second.url)
    try:
        assert api.dump() == before
    finally:
        api.http.close()
        assert second.stop() == 0


def test_a_clear_outlives_a_kill_between_its_plan_and_its_end(tmp_path: Path) -> None:
    first = ServerProcess(*journal(tmp_path))
    api = Api(first.url)
    api.produce(["a", "b", "c"], "f", backend_meta={"f": ["at a", "at b", "at c"]})
    clears = [api.ok("POST", "clears", {"keys": [key], "tombstone": True}) for key in ("a", "b")]
    before = api.dump()
    api.http.close()
    first.kill()

    second = ServerProcess(*journal(tmp_path))
    api.url, api.http = second.url, httpx.Client(base_url=second.url)
    try:
        assert api.dump() == before
        pending = api.ok("GET", "/v1/clears?state=pending")["clears"]
        assert [line["clear_id"] for line in pending] == [clear["clear_id"] for clear in clears]
        gone, back = (f"/v1/clears/{clear['clear_id']}" for clear in clears)
        assert api.ok("GET", gone)["plan"] == clears[0]["plan"]
        assert api.ok("POST", f"{gone}/commit")["cleared"] == 1
        assert api.ok("POST", f"{back}/abort")["state"] == "aborted"
        assert api.ok("GET", "batch-meta")["keys"] == ["b", "c"]
        assert api.send("POST", "samples", {"keys": ["a"]}).json()["code"] == "sample-cleared"
        assert api.ok("POST", "clears", {"all": True})["clear_id"] not in [clear["clear_id"] for clear in clears]
    finally:
        api.http.close()
        assert second.stop() == 0


def test_a_second_server_on_the_same_folder_refuses_to_start(tmp_path: Path) -> None:
    server = ServerProcess(*journal(tmp_path))
    try:
        line = one_line(*journal(tmp_path))
        assert str(tmp_path) in line
        assert str(server.process.pid) in line
    finally:
        assert server.stop() == 0


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which three changes were acknowledged."""
    folder = tmp_path_factory.mktemp("written")
    server = ServerProcess(*journal(folder))
    api = Api(server.url)
    for key in ("a", "b", "c"):
        api.insert(key)
    api.http.close()
    assert server.stop() == 0
    return folder


def copied(written: Path, folder: Path) -> Path:
    """A copy of that journal; its newest segment."""
    shutil.copytree(written / "journal", folder / "journal")
    return max((path for path in (folder / "journal").iterdir() if path.stat().st_size > 200), key=lambda p: p.name)


def test_a_torn_last_entry_is_cut(written: Path, tmp_path: Path) -> None:
    segment = copied(written, tmp_path)
    os.truncate(segment, segment.stat().st_size - 3)
    server = ServerProcess(*journal(tmp_path))
    try:
        with httpx.Client(base_url=server.url) as http:
            name = http.get("/v1/partitions").json()["partitions"][0]["partition_id"]
            assert [line["key"] for line in http.get(f"/v1/partitions/{name}/keys").json()["keys"]] == ["a", "b"]
    finally:
        assert server.stop() == 0


def test_damage_that_is_no_torn_entry_refuses_the_start_and_says_where(written: Path, tmp_path: Path) -> None:
    segment = copied(written, tmp_path)
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 0xFF
    segment.write_bytes(data)
    line = one_line(*journal(tmp_path))
    assert segment.name in line
    assert "byte" in line


@pytest.mark.parametrize(
    ("arguments", "env", "said"),
    [
        (["--port", "x"], {}, "--port='x'"),
        (["--port", "70000"], {}, "0 to 65535"),
        (["--journal", "sqlite:x"], {}, "file:///absolute/folder"),
        (["--device", "gpu"], {}, "npu:0"),
        (["--device", "cuda:7"], {}, "cuda"),
        (["--max-body-bytes", "-1"], {}, "1 or more"),
        (["--host", "0.0.0.0"], {}, "--allow-unauthenticated"),
        (["--host", "192.0.2.1", "--allow-unauthenticated"], {}, "choose another --host"),
        (["--journal", "file:~no-such-user/x"], {}, "~no-such-user"),
        ([], {"BATCHMETA_PROT": "1"}, "BATCHMETA_PROT is no setting"),
        ([], {"BATCHMETA_MAX_BODY_BYTES": "64MiB"}, "BATCHMETA_MAX_BODY_BYTES='64MiB'"),
        ([], {"BATCHMETA_LOG_LEVEL": "loud"}, "debug, info"),
    ],
)
def test_a_setting_that_is_wrong_stops_the_start_with_one_line(
    arguments: list[str], env: dict[str, str], said: str
) -> None:
    assert said in one_line("--journal", "memory:", *arguments, env=env)


def test_an_unknown_flag_stops_the_start() -> None:
    status, said = refused_start("--prot", "1")
    assert status == 2
    assert any("--prot" in line for line in said)
    assert not any("Traceback" in line for line in said)


def test_a_busy_port_is_said_in_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "app", "--journal", "memory:", "--port", str(port)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()  # this one is a Python process of its own: its imports say nothing either
    assert f"127.0.0.1:{port}" in line
    assert "--port" in line


def shims(folder: Path, **texts: str) -> dict[str, str]:
    """An environment in which these modules are imported in place of those that are installed."""
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    return {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}


def test_ctrl_c_during_the_imports_ends_it_without_a_traceback(tmp_path: Path) -> None:
    late = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nraise SystemExit('it went on')\n"
    done = subprocess.run(
        [sys.executable, "-m", "app", "--port", "0", "--journal", "memory:"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, **shims(tmp_path, uvicorn=late)},
        timeout=DEADLINE_S,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_without_uvloop_and_httptools_it_runs_on_what_is_there(tmp_path: Path) -> None:
    missing = "raise ImportError('not for this system')\n"
    env = shims(tmp_path, uvloop=missing, httptools=missing)
    command = [sys.executable, "-m", "app", "--port", "0", "--journal", "memory:", "--checkpoints", str(tmp_path)]
    process = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    url = process.stdout.readline().split()[-1]
    with httpx.Client(base_url=url, verify=NO_TLS) as http:
        assert http.post("/v1/partitions/p/samples", json={"count": 2}).status_code == 201
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0
    lines = [line for line in said.splitlines() if "instead of" in line]
    assert lines == [
        f"INFO {instead} instead of {module}, which is slower: not for this system"
        for module, instead in (("uvloop", "asyncio"), ("httptools", "h11"))
    ]
