"""The service as it is run: `python -m app`, a durable journal in a folder, a free port; or the same with a ticker."""

import http.client
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import Any

from crew.processes import StartFailed, end, launch, log_end, wait_until

from .profile import Profile

HOST = "127.0.0.1"
READY_S, STOP_S, CALL_S = 60, 15, 120
REST_S = 0.3
CHUNK = 8192
CHECKOUT = Path(__file__).resolve().parent.parent
SEEN = "seen.json"
APP = ("app",)


@dataclass(frozen=True, slots=True)
class Server:
    """A running service; `call` is for what is not measured."""

    url: str
    port: int
    process: "Popen[bytes]"

    def call(self, method: str, path: str, body: object = None) -> Any:
        """One call under /v1; its decoded answer. Raises StartFailed for anything but a 2xx."""
        text = None if body is None else json.dumps(body)
        with closing(http.client.HTTPConnection(HOST, self.port, timeout=CALL_S)) as connection:
            headers = {} if body is None else {"Content-Type": "application/json"}
            connection.request(method, f"/v1{path}", text, headers)
            answer = connection.getresponse()
            content = answer.read()
        if answer.status >= 300:
            raise StartFailed(f"{method} {path}: {answer.status} {content[:300].decode(errors='replace')}")
        return json.loads(content)

    def rest(self) -> None:
        """Wait until the service has nothing to do: for a while it takes no time of the processor."""
        before, took = -1, self._ticks()
        while took > before:
            time.sleep(REST_S)
            before, took = took, self._ticks()

    def _ticks(self) -> int:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def load(self, partition: str, profile: Profile) -> None:
        """Write all rows of the profile."""
        for begin in range(0, len(profile.keys), CHUNK):
            self.call("POST", f"/partitions/{partition}/production", profile.body(begin, begin + CHUNK))

    def fill(self, partition: str, profile: Profile, rows: int, tell: Callable[[str], None]) -> None:
        """Write so many rows in large calls: those of the profile again and again, each time with other keys."""
        body, begin = profile.body(0, CHUNK), 0
        while begin < rows:
            tell(f"filling {partition}: {begin:,} of {rows:,} rows")
            count = min(len(body["keys"]), rows - begin)
            if count < len(body["keys"]):
                body = profile.body(0, count)
            names = {part: [f"{begin}_{name}" for name in body[part]] for part in ("keys", "group_ids")}
            self.call("POST", f"/partitions/{partition}/production", body | names)
            begin += count


@contextmanager
def server(
    folder: Path, module: tuple[str, ...] = APP, journal: Path | None = None, in_memory: bool = False
) -> Iterator[Server]:
    """Start it and wait until it is ready; stopped in the end. `module` and its flags go before the service's own.

    Its log is in `folder`, which no other server has had; so is its journal, unless `journal` is another one's
    or it keeps none (`in_memory`).
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "server.log"
    kept = "memory:" if in_memory else (folder / "journal" if journal is None else journal).resolve().as_uri()
    flags = ("--host", HOST, "--port", "0", "--journal", kept)
    process = launch([sys.executable, "-m", *module, *flags], CHECKOUT, log)
    try:
        yield _ready(process, log)
    finally:
        end(process, STOP_S)


@contextmanager
def ticking(folder: Path) -> Iterator[Server]:
    """The service with the ticker inside; once it is stopped, `seen(folder)` are its stretches."""
    with server(folder, ("bench.ticker", "--out", str(folder / SEEN), "--")) as ours:
        yield ours


def seen(folder: Path) -> list[dict[str, list[float]]]:
    """Per stretch: lags, pauses, generations."""
    found: list[dict[str, list[float]]] = json.loads((folder / SEEN).read_text())
    return found


def _ready(process: "Popen[bytes]", log: Path) -> Server:
    def is_settled() -> bool:
        return process.poll() is not None or (_port(log) is not None and _answers(_port(log) or 0))

    wait_until(is_settled, READY_S)
    port = _port(log)
    if process.poll() is not None or port is None:
        raise StartFailed(f"the service did not start: {log_end(log, 3)}")
    return Server(f"http://{HOST}:{port}", port, process)


def _port(log: Path) -> int | None:
    found = re.search(r"at http://[\d.]+:(\d+)", log.read_text(errors="replace"))
    return None if found is None else int(found[1])


def _answers(port: int) -> bool:
    with closing(http.client.HTTPConnection(HOST, port, timeout=5)) as connection:
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
