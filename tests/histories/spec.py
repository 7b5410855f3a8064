"""One partition as a sequential object: what each operation answers in a state, and the state after it.

Samples are named by their keys; a claim's rows are those that are ready and free, in the order they were inserted. The
state is a value that can be hashed. `max_attempts` is taken to be out of reach, and time to stand still.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tests.histories.history import Operation

FREE, CONSUMED, DEAD = "free", "consumed", "dead"
OPEN, LOST = "open", "lost"
FATES = {"accepted": CONSUMED, "released": FREE, "rejected": DEAD}


class Row(NamedTuple):
    key: str
    ready: bool


class Task(NamedTuple):
    """`taken`: (key, consumed, dead, or the claim that holds it); `gone`: consumed ones that were deleted since."""

    taken: frozenset[tuple[str, Any]] = frozenset()
    gone: int = 0


class State(NamedTuple):
    """`leases`: (claim, task, what became of its rows), by claim."""

    rows: tuple[Row, ...] = ()
    tasks: frozenset[tuple[str, Task]] = frozenset()
    leases: frozenset[tuple[int, str, tuple[tuple[str, str], ...]]] = frozenset()

    def task(self, name: str) -> Task:
        return dict(self.tasks).get(name, Task())

    def with_task(self, name: str, task: Task) -> "State":
        return self._replace(tasks=frozenset({**dict(self.tasks), name: task}.items()))

    def fates(self, claim: int) -> tuple[str, dict[str, str]]:
        """Of which task the claim is, and what became of its rows."""
        return next((task, dict(fates)) for number, task, fates in self.leases if number == claim)

    def with_fates(self, claim: int, task: str, fates: dict[str, str]) -> "State":
        others = {lease for lease in self.leases if lease[0] != claim}
        return self._replace(leases=frozenset({*others, (claim, task, tuple(fates.items()))}))

    def lose(self, is_lost: Callable[[str, str], bool]) -> "State":
        """Open rows of leases for which `is_lost(task, key)` are taken away."""
        state = self
        for claim, task, fates in self.leases:
            after = {key: LOST if fate == OPEN and is_lost(task, key) else fate for key, fate in fates}
            state = state.with_fates(claim, task, after)
        return state


def step(state: State, operation: Operation) -> tuple[State, Any]:
    """The specification."""
    if operation.name == "claim":
        return claim(state, operation.number, *operation.arguments)
    return OPERATIONS[operation.name](state, *operation.arguments)


def write(state: State, keys: Iterable[str], ready: bool) -> tuple[State, int]:
    """Rows of these keys, made if need be, and ready if so; answers how many were made."""
    named = list(keys)
    known = [row.key for row in state.rows]
    rows = [Row(row.key, row.ready or (ready and row.key in named)) for row in state.rows]
    made = [Row(key, ready) for key in named if key not in known]
    return state._replace(rows=(*rows, *made)), len(made)


def insert(state: State, keys: Iterable[str]) -> tuple[State, int]:
    return write(state, keys, False)


def produce(state: State, keys: Iterable[str]) -> tuple[State, int]:
    return write(state, keys, True)


def claim(state: State, number: int, name: str, most: int, least: int, leased: bool) -> tuple[State, Any]:
    """Answers the keys handed out, or how many are ready where they are too few."""
    task = state.task(name)
    taken = {key for key, _ in task.taken}
    ready = [row.key for row in state.rows if row.ready and row.key not in taken]
    if len(ready) < least:
        return state, len(ready)
    out = tuple(ready[:most])
    after = state.with_task(name, Task(task.taken | {(key, number if leased else CONSUMED) for key in out}, task.gone))
    return (after.with_fates(number, name, dict.fromkeys(out, OPEN)) if leased else after), out


def ack(state: State, claim: int, named: tuple[tuple[str, str], ...]) -> tuple[State, Any]:
    """Answers (accepted, released, rejected, still open), or the keys that are lost, of which nothing is done."""
    name, fates = state.fates(claim)
    is_closed = OPEN not in fates.values()
    lost = {key for key, fate in named if fates[key] not in (OPEN, fate)}
    if lost or (not named and is_closed):
        return state, frozenset(lost or fates)
    task, taken = state.task(name), dict(state.task(name).taken)
    for key, fate in named:
        if fates[key] == OPEN:
            fates[key], taken[key] = fate, FATES[fate]
    kept = frozenset((key, held) for key, held in taken.items() if held != FREE)
    counts = tuple(sum(fate == said for _, said in named) for fate in FATES)
    after = state.with_task(name, Task(kept, task.gone)).with_fates(claim, name, fates)
    return after, (*counts, list(fates.values()).count(OPEN))


def delete(state: State, keys: Iterable[str]) -> tuple[State, int]:
    """Answers how many there were."""
    gone = {row.key for row in state.rows} & set(keys)
    after = state._replace(rows=tuple(row for row in state.rows if row.key not in gone))
    after = after.lose(lambda _, key: key in gone)
    for name, task in state.tasks:
        left = frozenset(held for held in task.taken if held[0] not in gone)
        consumed = sum(held == CONSUMED for key, held in task.taken if key in gone)
        after = after.with_task(name, Task(left, task.gone + consumed))
    return after, len(gone)


def reset(state: State, name: str) -> tuple[State, int]:
    """Answers how many were consumed, leased or dead."""
    task = state.task(name)
    after = state.lose(lambda held, _: held == name)
    return after.with_task(name, Task()), len(task.taken) + task.gone


def counts(state: State, name: str) -> tuple[State, tuple[int, int, int, int]]:
    """Answers (consumed, leased, dead, total)."""
    task = state.task(name)
    held = [what for _, what in task.taken]
    consumed, dead = held.count(CONSUMED), held.count(DEAD)
    return state, (consumed + task.gone, len(held) - consumed - dead, dead, len(state.rows) + task.gone)


def read(state: State, keys: Iterable[str]) -> tuple[State, tuple[int | None, ...]]:
    """Answers per key 0 or 1, ready or not, and None where there is no such sample."""
    rows = dict(state.rows)
    return state, tuple(int(rows[key]) if key in rows else None for key in keys)


OPERATIONS: dict[str, Callable[..., tuple[State, Any]]] = {
    "insert": insert,
    "produce": produce,
    "ack": ack,
    "delete": delete,
    "reset": reset,
    "counts": counts,
    "read": read,
}
