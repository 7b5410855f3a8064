"""Is a history linearizable: is there one order of its operations that the specification could have answered so, in
which none stands before one that had ended when it began (Herlihy & Wing 1990)?

The search is Wing & Gong's ("Testing and verifying concurrent objects", 1993) with Lowe's memory of configurations that
were tried ("Testing for linearizability", 2017): the set of operations placed so far, and the state they led to. The
problem is NP-complete; histories of some sixty operations, a handful of them at once, take milliseconds.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import TypeVar

from tests.histories.history import UNKNOWN, Operation

S = TypeVar("S", bound=Hashable)
Step = Callable[[S, Operation], tuple[S, object]]
"""The specification: the state after an operation in a state, and what it answers."""


@dataclass(frozen=True)
class Verdict:
    """The order found, or None; then `furthest` is how far one could get, and `stuck` what could come next of it."""

    order: list[Operation] | None
    furthest: list[Operation]
    stuck: list[Operation]
    configurations: int

    def __str__(self) -> str:
        if self.order is not None:
            return "linearizable"
        lines = ["not linearizable; after", *map(str, self.furthest), "none of these fits:", *map(str, self.stuck)]
        return "\n  ".join(lines)


def linearize(history: Sequence[Operation], step: Step[S], start: S) -> Verdict:
    """Look for an order. What was not answered may be placed anywhere after its call, or left out."""
    answered = sum(1 << at for at, operation in enumerate(history) if operation.answer is not UNKNOWN)
    seen = {(0, start)}
    placed: list[Operation] = []
    furthest: tuple[list[Operation], list[Operation]] = ([], list(history))
    trail = [(0, _moves(history, step, 0, start))]
    while trail:
        done, moves = trail[-1]
        if done & answered == answered:
            return Verdict(list(placed), list(placed), [], len(seen))
        found = next((move for move in moves if (move[0], move[1]) not in seen), None)
        if found is None:
            trail.pop()
            placed = placed[: max(0, len(trail) - 1)]
            continue
        done, state, operation = found
        seen.add((done, state))
        placed.append(operation)
        if len(placed) > len(furthest[0]):
            furthest = (list(placed), [history[at] for at in _next(history, done)])
        trail.append((done, _moves(history, step, done, state)))
    return Verdict(None, *furthest, len(seen))


def _moves(history: Sequence[Operation], step: Step[S], done: int, state: S) -> Iterator[tuple[int, S, Operation]]:
    """What may come next and is answered as it was: (operations placed then, state then, the operation)."""
    for at in _next(history, done):
        operation = history[at]
        after, answer = step(state, operation)
        if operation.answer is UNKNOWN or operation.answer == answer:
            yield done | 1 << at, after, operation


def _next(history: Sequence[Operation], done: int) -> list[int]:
    """Operations that may come next: called before any that is left had ended; those that end first, first."""
    left = [at for at in range(len(history)) if not done >> at & 1]
    first_end = min((history[at].returned for at in left), default=inf)
    return sorted((at for at in left if history[at].called <= first_end), key=lambda at: history[at].returned)
