"""A stand-in for the service that knows claims, acks and extensions, and a sleep that a test lets pass."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx

from batchmeta import AsyncClient, Retries
from tests.client.service import batch, ok, problem
from tests.conftest import DEADLINE_S

LEASE_S = 90.0
ROWS = [4, 5, 6]


def leased(*rows: int, number: int = 1) -> httpx.Response:
    """A claim of these rows."""
    info = {
        "claim_id": f"c{number}",
        "task": "t",
        "ack": "explicit",
        "worker": None,
        "token": f"token {number}",
        "attempt": 1,
        "attempts": [1] * len(rows),
        "expires_in_s": LEASE_S,
    }
    return ok({"partition_id": "p", "revision": 8, "claim": info, "batch": batch(list(rows))}, 201)


def nothing(done: bool = False, stranded: int = 0, **blocking: int) -> httpx.Response:
    """No claim this time; `stranded`: the service says that so many rows are left for ever, and why."""
    reasons = [{"reason": reason, "count": count, "global_indexes": []} for reason, count in blocking.items()]
    more = {"ready": 0, "wanted": 1, "done": done, "blocking": reasons} | ({"stranded": stranded} if stranded else {})
    return ok({"partition_id": "p", "revision": 8, "claim": None, "batch": batch([]), **more})


def lost(*rows: int) -> httpx.Response:
    return problem("lease-lost", global_indexes=list(rows))


class Leasing:
    """Answers claims from a list, extends and acks everything; `refuse` answers one call in its place."""

    def __init__(self, *claims: httpx.Response) -> None:
        self.claims = [*claims, nothing(done=True)]
        self.said: list[tuple[str, Any]] = []
        self.keys: list[str] = []
        self.refuse: Callable[[str, Any], httpx.Response | None] = lambda verb, body: None

    def __call__(self, request: httpx.Request) -> httpx.Response:
        verb, body = request.url.path.rpartition("/")[2], json.loads(request.content)
        self.said.append((verb, body))
        self.keys.append(request.headers["Idempotency-Key"])
        refused = self.refuse(verb, body)
        if refused is not None:
            return refused
        if verb == "claims":
            return self.claims.pop(0) if len(self.claims) > 1 else self.claims[0]
        if verb == "extend":
            return ok({"open": len(ROWS), "expires_in_s": LEASE_S})
        return ok({"partition_id": "p", "revision": 9, **self._counts(body)})

    def _counts(self, body: Any) -> dict[str, int]:
        settled = [len(body.get(name, ())) for name in ("accept", "release", "reject")]
        return {
            "accepted": settled[0],
            "released": settled[1],
            "rejected": settled[2],
            "open": len(ROWS) - sum(settled),
        }

    def bodies(self, verb: str) -> list[Any]:
        """What was said with this verb, tokens aside."""
        return [{name: body[name] for name in body if name != "token"} for said, body in self.said if said == verb]


class Naps:
    """Pauses before a retry pass at once, on a clock of their own; the naps between extensions pass when told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self.naps: list[float] = []
        self._gates: list[asyncio.Event] = []
        self._changed = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        if seconds != LEASE_S / 3:
            self.now += seconds
            return
        gate = asyncio.Event()
        self.naps.append(seconds)
        self._gates.append(gate)
        self._changed.set()
        await gate.wait()

    async def napping(self, count: int) -> None:
        """Return when the `count`-th nap has begun."""
        async with asyncio.timeout(DEADLINE_S):
            while len(self.naps) < count:
                self._changed.clear()
                await self._changed.wait()

    async def one_passes(self) -> None:
        """The nap that has begun ends, and what follows is done until the next."""
        count = len(self.naps)
        self._gates[-1].set()
        await self.napping(count + 1)

    async def last_passes(self) -> None:
        """The nap that has begun ends, and none follows: one turn of the loop for each step of the call."""
        self._gates[-1].set()
        for _ in range(50):
            await asyncio.sleep(0)

    def retries(self, most: int | None = None, within_s: float = 60.0) -> Retries:
        return Retries(most=most, within_s=within_s, clock=lambda: self.now, random=lambda: 1.0, sleep=self.sleep)

    def client(self, service: Callable[[httpx.Request], httpx.Response], **retries: Any) -> AsyncClient:
        return AsyncClient(transport=httpx.MockTransport(service), retries=self.retries(**retries))
