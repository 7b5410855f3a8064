"""When a call is sent again, and after which pause. No I/O of its own: time is handed in."""

import asyncio
import random
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from .errors import ConnectionLost, IdempotencyInFlight, Problem


@dataclass(frozen=True, slots=True)
class Retries:
    """At most `most` more sendings, none begun later than `within_s` seconds after the first, a `wait_s` not counted.

    The pause before the n-th is random between half of and all of `first_s` · 2^(n-1), at most `longest_s` (seconds),
    plus what the service asked for with `Retry-After`. `Retries(most=0)` never sends twice.
    """

    most: int = 4
    first_s: float = 0.1
    longest_s: float = 5.0
    within_s: float = 60.0
    clock: Callable[[], float] = time.monotonic
    random: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def pause(self, error: ConnectionLost | Problem, sent: int, elapsed_s: float) -> float | None:
        """Seconds until the next sending after `sent` of them, or None if there is to be none."""
        if sent > self.most or not passes(error):
            return None
        asked_s = error.retry_after_s or 0.0 if isinstance(error, Problem) else 0.0
        # Jitter on top of what was asked: all who were refused at once must not come back at once.
        # No float has an exponent of a thousand sendings.
        pause = asked_s + min(self.longest_s, self.first_s * 2.0 ** min(sent - 1, 60)) * (1 + self.random()) / 2
        return pause if elapsed_s + pause <= self.within_s else None

    def patient(self) -> "Retries":
        """The same, but as many sendings as `within_s` allows. One that never sends twice stays so."""
        return replace(self, most=sys.maxsize) if self.most else self


def passes(error: ConnectionLost | Problem) -> bool:
    """The same call may succeed later: no answer, or one that says so (429, 503, and 409 while it is on its way)."""
    if isinstance(error, ConnectionLost | IdempotencyInFlight):
        return True
    return error.retryable and error.status in (429, 503)


DEFAULT = Retries()
