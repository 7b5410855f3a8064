"""What a call comes to: its rendered result, Parked, the steps that make one of them, or the error for its caller."""

import logging
from collections.abc import Callable
from types import GeneratorType
from typing import Any

from core.engine import Engine
from core.errors import Refused
from core.operations.parked import Parked
from core.slices import Sliced, at_once

from .calls import Internal
from .journal_writer import Broken

MORE = object()
"""The outcome of a step that is not the last."""
_log = logging.getLogger("batchmeta")


def outcome_of(engine: Engine, run: Callable[[Engine], object], render: Callable[[Any], object]) -> object:
    """Run an operation and render its result. Raises Broken.

    A bug reaches its caller alone, as Internal, unless a change was applied in part.
    """
    try:
        result = run(engine)
        if isinstance(result, GeneratorType):
            return _rendered(result, render)
        return result if isinstance(result, Parked) or result is MORE else render(result)
    except Exception as error:
        if engine.applying:
            raise Broken("a change was applied in part: memory and journal may differ") from error
        if isinstance(error, Refused):
            return error
        _log.exception("a call broke before it changed anything")
        return Internal()


def _rendered(steps: Sliced[object], render: Callable[[Any], object]) -> Sliced[object]:
    """The steps of an operation, then what renders its result, which may be in steps too."""
    result = yield from steps
    if isinstance(result, Parked):
        return result
    reply = render(result)
    return (yield from reply) if isinstance(reply, GeneratorType) else reply


def same(result: object) -> object:
    """What is rendered already."""
    return result


def step(steps: Sliced[object], _: Engine) -> object:
    """One step, as an operation: what the steps make, or MORE."""
    try:
        next(steps)
    except StopIteration as end:
        return end.value
    return MORE


def all_steps(steps: Sliced[object], _: Engine) -> object:
    """All that are left, as an operation."""
    return at_once(steps)
