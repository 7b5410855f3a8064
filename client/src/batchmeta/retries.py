"""Decides whether a call is sent again, and after which pause. It does no I/O; time is an argument."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from .arguments import seconds, whole
from .errors import ConnectionLost, IdempotencyInFlight, Problem

FEW = 4


@dataclass(frozen=True, slots=True)
class Retries:
    """Sent again for `within_s` seconds after the first sending, a `wait_s` not counted; no sending begins later.

    `most` bounds how often, if it is given: `Retries(most=0)` never sends twice.
    The pause before the n-th is random between half of and all of `first_s` · 2^(n-1), at most `longest_s` (seconds),
    plus what was asked for with `Retry-After`. ValueError for seconds that are not finite or below 0.
    """

    most: int | None = None
    first_s: float = 0.1
    longest_s: float = 5.0
    within_s: float = 60.0
    clock: Callable[[], float] = time.monotonic
    random: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def __post_init__(self) -> None:
        if self.most is not None:
            whole(self.most, "most")
        for name in ("first_s", "longest_s", "within_s"):
            seconds(getattr(self, name), name)

    def pause(self, error: ConnectionLost | Problem, sent: int, elapsed_s: float) -> float | None:
        """Seconds until the next sending after `sent` of them, or None if there is to be none."""
        if (self.most is not None and sent > self.most) or not passes(error):
            return None
        # Jitter on top of what was asked: all who were refused at once must not come back at once.
        # No float has an exponent of a thousand sendings.
        grown = min(self.longest_s, self.first_s * 2.0 ** min(sent - 1, 60))
        pause = (error.retry_after_s or 0.0) + grown * (1 + self.random()) / 2
        return pause if elapsed_s + pause <= self.within_s else None

    def hasty(self) -> "Retries":
        """Few sendings, unless the caller says how many."""
        return replace(self, most=FEW) if self.most is None else self


def passes(error: ConnectionLost | Problem) -> bool:
    """The same call may succeed later: what became of it is unknown (no answer, a 5xx), or the answer says "later".

    That is 429, and 409 while the call is on its way, where `retryable` says so.
    """
    if isinstance(error, ConnectionLost) or error.status >= 500:
        return True
    return error.retryable and (error.status == 429 or isinstance(error, IdempotencyInFlight))


DEFAULT = Retries()
