"""Work in slices: what would hold the engine's thread for long is done in steps, and other calls run in between.

An operation that may take long returns a *sliced* result: a generator that yields `None` after each step and returns
the result, or `Parked`. A function below the operation is sliced in the same way, and called with `yield from`. So is
what renders a result. The contract of such a generator:

* A step takes a few milliseconds, at most ten: work on 8,192 to 65,536 rows. What is short yields never.
* Between two steps anything may change: rows, fields, tasks, the partition itself. What a later step reads is copied in
  an earlier one, or found anew and checked. A partition that was deleted meanwhile is being emptied: look first whether
  it is still the one of its name.
* Nothing of a generator's body runs before its first step, which may come after other calls. What must be decided at
  the call's own place in the order is done before, in a plain function that returns the generator.
* Whatever it changes it commits in one step. A call with a key is finished in the step that commits, however long that
  takes, because its reply stands in the same journal entry; so its work is done before.
* It may be dropped between two steps, when its caller leaves or after a restore. It is then closed: `GeneratorExit` is
  raised where it stands, so that a `finally` can give back what it holds.
* A step that raises Refused answers the call.

The engine's thread does one step after each drain, of the calls in turn (core/runtime/slices.py).
"""

from collections.abc import Callable, Generator
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

Sliced = Generator[None, None, T]
"""Yields between steps; its value is what they make."""


def begun(steps: Sliced[T]) -> T | Sliced[T]:
    """The first step done now: what it makes, or the steps that are left. What is short has its result at once."""
    try:
        next(steps)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    return steps


def after(made: T | Sliced[T], then: Callable[[T], R | Sliced[R]]) -> R | Sliced[R]:
    """`then` of what is made, either or both in slices. It begins in the step that makes it."""
    return _after(made, then) if isinstance(made, Generator) else then(made)


def _after(steps: Sliced[T], then: Callable[[T], R | Sliced[R]]) -> Sliced[R]:
    made = then((yield from steps))
    return (yield from made) if isinstance(made, Generator) else made


def at_once(sliced: Sliced[T]) -> T:
    """All steps one after the other."""
    while True:
        try:
            next(sliced)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
