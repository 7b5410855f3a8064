"""One life of a real server after the other, all on one folder, each ended by SIGKILL at a point or at any moment.
No test lives here.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.conftest import DEADLINE_S, NO_TLS, ROOT, ServerProcess
from tests.crash.account import Account
from tests.crash.calls import Door, Lost, Unanswered

SITE = Path(__file__).parent / "site"
SEGMENT_BYTES = 6000
ENDLESS = 2**30
MOST = 20
"""Calls of each caller in a life that ends at a point."""


def door(http: httpx.AsyncClient) -> Door:
    async def request(method: str, target: str, body: Any, headers: dict[str, str]) -> tuple[int, Any, bytes]:
        try:
            reply = await http.request(method, target, json=body, headers=headers)
        except httpx.TransportError:
            raise Unanswered from None
        if reply.status_code == 503:
            raise Unanswered
        return reply.status_code, reply.headers, reply.content

    return request


class NotStarted(Lost):
    """It does not start again."""


def was_reached(environment: dict[str, str]) -> bool:
    """The point that it says."""
    return Path(environment.get("FAILPOINT_MARK", "/")).is_file()


@dataclass
class Lives:
    """A folder, and the account of all that was said to the servers that lived on it."""

    root: Path
    chance: random.Random = field(default_factory=random.Random)
    account: Account = field(default_factory=Account)
    segment_bytes: int = SEGMENT_BYTES
    disk: str = ""
    planted: str = ""
    lives: int = 0

    def __post_init__(self) -> None:
        self.root.mkdir()

    async def at(self, point: str) -> None:
        """A life that ends at a named point. Raises Lost; an AssertionError where the point is not reached."""
        mark = self.root / f"mark-{self.lives}"

        async def until_killed(server: ServerProcess, http: httpx.AsyncClient) -> None:
            await self.account.call_together(door(http), MOST)
            deadline = time.monotonic() + DEADLINE_S
            while not mark.exists():
                assert server.process.poll() is None or mark.exists(), f"ended before {point}"
                assert time.monotonic() < deadline, f"{point} was not reached"
                await asyncio.sleep(0.01)  # polls a real process

        try:
            await self._live(until_killed, {"FAILPOINT": point, "FAILPOINT_MARK": str(mark)})
        except NotStarted:  # unless it was killed while it was asked whether it is ready
            if not mark.exists():
                raise

    async def at_random(self, longest_s: float) -> None:
        """A life that ends at any moment, under calls. Raises Lost."""

        async def for_a_while(server: ServerProcess, http: httpx.AsyncClient) -> None:
            calling = asyncio.ensure_future(self.account.call_together(door(http), 10_000))
            await asyncio.wait([calling], timeout=self.chance.uniform(0, longest_s))
            await asyncio.to_thread(server.kill)
            await calling

        await self._live(for_a_while, {})

    async def settled(self) -> None:
        """A last life, in which nothing is cut. Raises Lost."""

        async def nothing(server: ServerProcess, http: httpx.AsyncClient) -> None:
            await self.account.settle(door(http))

        await self._live(nothing, {})

    async def _live(
        self, ending: Callable[[ServerProcess, httpx.AsyncClient], Awaitable[None]], environment: dict[str, str]
    ) -> None:
        try:
            server = await asyncio.to_thread(self._start, environment)
        except Lost:
            if not was_reached(environment):  # else it was killed as it started
                raise
            return
        try:
            async with httpx.AsyncClient(base_url=server.url, timeout=DEADLINE_S, verify=NO_TLS) as http:
                with suppress(Unanswered):
                    await self.account.settle(door(http))
                await ending(server, http)
        finally:
            server.kill()

    def _start(self, environment: dict[str, str]) -> ServerProcess:
        own = {"PYTHONPATH": f"{SITE}:{ROOT}", "FAILPOINT_SEGMENT_BYTES": str(self.segment_bytes)}
        own |= {"FAILPOINT_DISK": self.disk, "FAILPOINT_PLANTED": self.planted, **environment}
        self.lives += 1
        try:
            return ServerProcess("--journal", f"file://{self.root}/journal", env=own)
        except RuntimeError as error:
            raise Lost(f"it does not start again: {error}") from error
