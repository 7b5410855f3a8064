"""The values between the event loop and the engine's thread: a call, its preconditions, and the thread's reading."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from core.engine import Engine
from core.events import Kept
from core.state.kept_replies import Keepable, Keyed

K = TypeVar("K", bound=Keepable)


class Internal(Exception):
    """An operation broke before it applied anything; the traceback is in the log."""


@dataclass(frozen=True, slots=True)
class Preconditions(Generic[K]):
    """What must hold before a call runs: its epoch is the current one, and its key was not used before.

    `again` makes the reply to a repeated call from the kept reply of the first.
    """

    epoch: int | None
    keyed: Keyed | None
    again: Callable[[Kept], K]


NO_PRECONDITIONS: Preconditions[Any] = Preconditions(None, None, lambda kept: kept)


@dataclass(eq=False, slots=True)
class Call:
    """One caller's request: what to run, how to render its result, and the future that gets the outcome."""

    run: Callable[[Engine], object]
    render: Callable[[Any], Any]
    future: "asyncio.Future[Any]"
    keyed: Keyed | None
    epoch: int | None


@dataclass(frozen=True, slots=True)
class Reading:
    """What health and metrics see; a new one after each drain. `reason` is why the service is not ready."""

    reason: str | None
    revision: int
    epoch: int
    partitions: int
    waiting: int


Answer = tuple["asyncio.Future[Any]", object]
"""A call's future, and its outcome: a rendered reply or an exception."""


def resolve(answers: list[Answer]) -> None:
    """Give each future its outcome, unless its caller has left. Runs on the loop."""
    for future, outcome in answers:
        if future.done():
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
