"""Sends a `Call` over the loop's transport, again where that may help, and returns the answer or raises."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from itertools import count
from pathlib import Path

import httpx

from .answers import failure, lost
from .calls import Call
from .errors import ConnectionLost, Problem
from .exchange import Answer
from .files import opened, saved
from .retries import FEW, Retries
from .transports import Transports

_log = logging.getLogger("batchmeta")


@dataclass(slots=True)
class Connection:
    """The way to one service. `timeout_s`: seconds without progress after which a call is given up.

    `pin_epoch`: from the first answer on, calls are for that epoch alone.
    """

    base_url: str
    timeout_s: float
    retries: Retries
    transport: httpx.AsyncBaseTransport | None = None
    pin_epoch: bool = False
    _epoch: str | None = None
    _transports: Transports = field(init=False)

    def __post_init__(self) -> None:
        url = httpx.URL(self.base_url)
        if url.scheme not in ("http", "https") or not url.host:
            raise ValueError(f"base_url must be like http://127.0.0.1:8700, not {self.base_url!r}")
        self.base_url = self.base_url.rstrip("/")
        self._transports = Transports(self.base_url, self.timeout_s, self.transport)

    async def send(
        self, call: Call, retries: Retries | None = None, exchange: Callable[[Call], Awaitable[Answer]] | None = None
    ) -> Answer:
        """A 2xx answer, its body read. Problem or ConnectionLost otherwise, after the retries that the call allows.

        `retries`: other ones than the connection's own. What the call waits on purpose does not count as theirs.
        `exchange`: another way to get an answer than one in memory.
        """
        retries = retries or self.retries
        began = retries.clock()
        for sent in count(1):
            try:
                return await self._send_once(call, exchange or self._exchange)
            except (ConnectionLost, Problem) as error:
                pause = _pause(retries, call, error, sent, retries.clock() - began)
                if pause is None:
                    raise
            await retries.sleep(pause)
        raise AssertionError("count() does not end")

    async def send_file(self, call: Call, path: Path) -> Answer:
        """As `send`, with a file as the body; what is sent again is the file as it is then. Raises OSError too."""
        return await self.send(call, exchange=partial(self._exchange_file, path))

    async def save_answer(self, call: Call, path: Path, digest: str) -> None:
        """As `send`; the answer's body becomes the file `path`, once it is whole. `digest`: its SHA-256 in hex.

        Raises UnreadableReply for another body, and OSError too.
        """
        await self.send(call, exchange=partial(self._exchange_answer, path, digest))

    def new_epoch(self) -> None:
        """The next answer's epoch is the one."""
        self._epoch = None

    async def close(self) -> None:
        """Close what this process opened. A call after it is a RuntimeError."""
        await self._transports.close()

    async def _send_once(self, call: Call, exchange: Callable[[Call], Awaitable[Answer]]) -> Answer:
        began = self.retries.clock()
        failed: ConnectionLost | Problem
        try:
            answer = await exchange(call)
        except httpx.RequestError as error:
            failed = lost(call, self.base_url, error)
        else:
            if answer.status_code < 300:
                self._note_epoch(call, answer)
                return answer
            failed = failure(call, answer)
        if isinstance(failed, ConnectionLost):
            failed.after_s = self.retries.clock() - began
        raise failed  # out here: the transport's error is not its context

    async def _exchange(self, call: Call) -> Answer:
        transport = await self._transports.here()
        return await transport.exchange(call, self._epoch_for(call))

    async def _exchange_file(self, path: Path, call: Call) -> Answer:
        sending = await asyncio.to_thread(opened, path)
        described = replace(call, headers={**call.headers, **sending.headers})
        with sending.file:
            async with (
                self._transports.for_a_file() as transport,
                transport.streamed(described, self._epoch_for(call), sending.pieces()) as answer,
            ):
                await answer.aread()
        return answer

    async def _exchange_answer(self, path: Path, digest: str, call: Call) -> Answer:
        async with (
            self._transports.for_a_file() as transport,
            transport.streamed(call, self._epoch_for(call)) as answer,
        ):
            if answer.status_code == HTTPStatus.OK:
                await saved(answer, path, digest)
            else:
                await answer.aread()
        return answer

    def _epoch_for(self, call: Call) -> str | None:
        return self._epoch if call.is_pinned else None

    def _note_epoch(self, call: Call, answer: Answer) -> None:
        if self.pin_epoch and self._epoch is None and call.is_pinned:
            self._epoch = answer.headers.get("X-Epoch")


def _pause(retries: Retries, call: Call, error: ConnectionLost | Problem, sent: int, elapsed_s: float) -> float | None:
    """Seconds until the next sending, or None. Tells of a call that takes long, and how often it was sent."""
    pause = retries.pause(error, sent, elapsed_s - call.wait_s) if call.resend else None
    if pause is None and sent > 1:
        error.add_note(f"sent {sent} times within {elapsed_s:.1f} s")
    if pause is not None and sent == FEW:
        _log.warning("%s; it is sent again for up to %g s", error, retries.within_s + call.wait_s)
    return pause
