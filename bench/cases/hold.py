"""The longest that one thing holds the engine's thread, while all other calls wait: one line for each thing.

Each is called over HTTP in a service that holds a partition of 65,536 rows, or of 10^6, keyed and tagged. What is read
is the service's own clock of its thread; the median of a few times is judged.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from crew.processes import wait_until

from ..child import Child
from ..holding import holding, longest_hold_s
from ..outcome import Case, Line, Outcome, at_most
from ..place import Place
from ..profile import CLAIMED, FIELDS, PARTS, Json
from ..server import CHUNK, Server
from ..worker import Worker

MOST_MS = 25
ROWS, PAGE = 65_536, 10_000
TIMES = 3
SETTLE_S = 0.3  # what goes on behind an answer, in slices
LEASES_PER_S, LEAST_LEASE_S, END_S = 400, 2, 30
PARTITION = "p"
SAMPLERS: tuple[Json, ...] = (
    {"name": "grpo_group", "n_samples_per_prompt": 8},
    {"name": "random"},
    {"name": "token_budget", "weight": "seq_len", "budget": 40_000},
    {"name": "priority", "weight": "seq_len"},
    {"name": "rank_aware", "dp_rank": 0, "batch_index": 0, "n_samples_per_prompt": 8},
    {"name": "seqlen_balanced", "dp_rank": 0, "batch_index": 0, "dp_size": 8, "weight": "seq_len"},
)


class NotEnded(RuntimeError):
    """Leases were still there after their time."""


class Things:
    """What may hold the thread; each is done once by a call, which gives the longest hold meanwhile, in seconds."""

    def __init__(self, place: Place, ours: Server, worker: Child, folder: Path, rows: int) -> None:
        self.ours, self.worker, self.folder, self.rows = ours, worker, folder, min(ROWS, rows)
        self.leases, self.settle_s = min(place.scale.leases, rows // 4), SETTLE_S if place.scale.is_judged else 0.0
        self.numbers = count()

    def often(self) -> dict[str, Callable[[], float]]:
        """By name, those that can be done again and again."""
        claims = {
            f"a first claim with {sampler['name']}": partial(self.claim, 8, sampler=sampler) for sampler in SAMPLERS
        }
        return {
            f"a read of {self.rows:,}": self.read,
            f"a claim of {self.rows:,}": partial(self.claim, self.rows),
            "a page of keys by prefix": self.keys,
            **claims,
            "a first claim with a new where": self.claim_where,
            f"a clear plan of {self.rows:,} keyed rows": self.clear,
            "a save in memory": self.save,
        }

    def once(self) -> dict[str, Callable[[], float]]:
        """By name, those that take long to prepare, and the end of the partition."""
        return {
            f"{self.leases:,} leases that end at one moment": self.leases_end,
            f"the release of a worker that holds {self.leases:,} leases": self.release,
            "the delete of the partition": self.delete,
        }

    def read(self) -> float:
        """All parts of as many rows as a read may have."""
        body = {"fields": list(FIELDS), "include": PARTS, "compact": True, "limit": self.rows}
        return self._held("POST", f"/partitions/{PARTITION}/batch-meta", body)

    def claim(self, size: int, **more: Json) -> float:
        """By a task of its own, so that it is its first."""
        task = f"t{next(self.numbers)}"
        body = {"fields": list(CLAIMED), "batch_size": size, "compact": True} | more
        return self._held("POST", f"/partitions/{PARTITION}/tasks/{task}/claims", body)

    def claim_where(self) -> float:
        """With a condition that was not there before, and holds for nearly all rows."""
        return self.claim(8, where=[{"path": "seq_len", "op": ">", "value": next(self.numbers) % 100}])

    def keys(self) -> float:
        """The last of them, so that nothing is found early."""
        return self._held("GET", f"/partitions/{PARTITION}/keys?prefix={self._last_call()}_&limit={PAGE}")

    def _last_call(self) -> int:
        total = self.ours.call("GET", f"/partitions/{PARTITION}")["num_samples"]
        return int((total - 1) // CHUNK * CHUNK)

    def clear(self) -> float:
        """Planned, and aborted outside the time."""
        plan: Json = {}
        held = self._held("POST", f"/partitions/{PARTITION}/clears", {"global_indexes": list(range(self.rows))}, plan)
        self.ours.call("POST", f"/clears/{plan['clear_id']}/abort", {})
        return held

    def save(self) -> float:
        """A checkpoint of a service whose journal no other process can read."""
        return self._held("POST", "/checkpoints", {"name": f"c{next(self.numbers)}"})

    def leases_end(self) -> float:
        """Taken one by one, with one end."""
        task = f"t{next(self.numbers)}"
        length = max(LEAST_LEASE_S, self.leases / LEASES_PER_S)
        left = self.worker.do("lease", PARTITION, task, "w", self.leases, length)
        longest_hold_s(self.folder)
        time.sleep(max(0.0, left))
        counts = f"/partitions/{PARTITION}/tasks/{task}/consumption?counts_only=true"
        if not wait_until(lambda: self.ours.call("GET", counts)["leased"] == 0, END_S):
            raise NotEnded(f"{self.leases} leases did not end in {END_S} s")
        return longest_hold_s(self.folder)

    def release(self) -> float:
        """One call, however many leases."""
        self.worker.do("lease", PARTITION, f"t{next(self.numbers)}", "w", self.leases, 3600)
        return self._held("POST", "/workers/w/release", {})

    def delete(self) -> float:
        """With all that it holds."""
        return self._held("DELETE", f"/partitions/{PARTITION}")

    def _held(self, method: str, path: str, body: Json = None, answer: Json = None) -> float:
        longest_hold_s(self.folder)
        got = self.ours.call(method, path, body)
        time.sleep(self.settle_s)
        held = longest_hold_s(self.folder)
        if answer is not None:
            answer |= got
        return held


def run(place: Place) -> Outcome:
    """Both sizes, each in a service of its own."""
    lines: list[Line] = []
    data: dict[str, Any] = {}
    for rows in sorted({min(ROWS, place.scale.big), place.scale.big}):
        found = _measure(place, rows)
        lines += [_line(place, f"{rows:,} rows: {name}", holds) for name, holds in found.items()]
        data[str(rows)] = {name: [round(1e3 * held, 2) for held in holds] for name, holds in found.items()}
    return Outcome(lines, data)


def _measure(place: Place, rows: int) -> dict[str, list[float]]:
    folder = place.folder("hold")
    with ExitStack() as stack:
        ours = stack.enter_context(holding(folder))
        worker = stack.enter_context(Child(Worker, ours.url))
        ours.fill(PARTITION, place.profile(min(CHUNK, rows)), rows, place.tell)
        things = Things(place, ours, worker, folder, rows)
        found: dict[str, list[float]] = {}
        for name, thing in things.often().items():
            place.tell(f"{rows:,} rows: {name}")
            found[name] = [thing() for _ in range(min(TIMES, place.scale.rounds))]
        for name, thing in things.once().items():
            place.tell(f"{rows:,} rows: {name}")
            found[name] = [thing()]
    return found


def _line(place: Place, name: str, holds: list[float]) -> Line:
    held = 1e3 * median(holds)
    row, said = f"longest hold of the engine's thread, {name}", f"{held:.1f} ms"
    return at_most(row, MOST_MS, held, said, "ms") if place.scale.is_judged else Line(row, ours=said)


CASE = Case("hold", "the longest that one thing holds the engine's thread", run)
