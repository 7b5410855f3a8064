"""Watches events being applied: which states of `core.state.transitions` each took to which others."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from core.apply.table import EVENTS
from core.events import Event, Restored
from core.snapshot.image import restore
from core.state.leases import Lease
from core.state.partition import Partition
from core.state.service import ServiceState
from core.state.transitions import ABSENT, CLEAR, FREE, GONE, LEASE, MACHINES, OPEN, ROW, TASK, Machine, State
from tests.core.world import new_engine

Function = Callable[[Any, Any], None]
Thing = tuple[str | int, ...]
States = dict[Thing, State | None]
Seen = tuple[str, str, str, str]  # machine, from, event, to

KINDS = {"row": ROW, "task": TASK, "lease": LEASE, "clear": CLEAR}


class Watch:
    """`seen`: every transition; `unlike`: leases that are closed with an OPEN row, or open without."""

    def __init__(self, events: Mapping[type[Event], Function] = EVENTS) -> None:
        self._events = events
        self.seen: set[Seen] = set()
        self.unlike: list[str] = []

    def events(self) -> Mapping[type[Event], Function]:
        """The table of events, each watched."""
        return {kind: self._watched(function) for kind, function in self._events.items()}

    def _watched(self, function: Function) -> Function:
        def watched(state: ServiceState, event: Event) -> None:
            before = states_of(_image_of(event) if isinstance(event, Restored) else state)
            function(state, event)
            self._compare(type(event).__name__, before, states_of(state))
            self.unlike += map(_unlike, filter(_is_unlike, leases_of(state)))

        return watched

    def _compare(self, event: str, before: States, after: States) -> None:
        for thing in before.keys() | after.keys():
            kind = str(thing[0])
            was, now = before.get(thing, _FIRST[kind]), after.get(thing, _LAST[kind])
            if was != now and now is not None:
                self.seen.add((KINDS[kind].name, name_of(KINDS[kind], was), event, name_of(KINDS[kind], now)))


# What a thing is that is not there: before it began, and after. A row for a task ends with the row, and a lease or
# a clear is forgotten: None.
_FIRST: dict[str, State | None] = {"row": ABSENT, "task": FREE, "lease": None, "clear": None}
_LAST: dict[str, State | None] = {"row": GONE, "task": None, "lease": None, "clear": None}


def name_of(machine: Machine, state: State | None) -> str:
    return "" if state is None else machine.states[state][0]


def table() -> set[Seen]:
    """The transitions that the tables have."""
    return {
        (machine.name, name_of(machine, before), event.__name__, name_of(machine, after))
        for machine in MACHINES
        for before, event, after in machine.transitions
    }


def _image_of(event: Restored) -> ServiceState:
    """A restore begins with the states that the image has."""
    scratch = new_engine()
    restore(scratch, event.image)
    return scratch


def leases_of(state: ServiceState) -> Iterator[Lease]:
    yield from state.leases.open.values()
    yield from state.leases.closed.values()


def _is_unlike(lease: Lease) -> bool:
    return lease.is_closed == (OPEN in lease.fate)


def _unlike(lease: Lease) -> str:
    return f"{lease.claim_id}: {lease.is_closed=} {lease.fate.tolist()}"


def states_of(state: ServiceState) -> States:
    """The state of everything that is there."""
    found: States = {}
    for name, partition in state.partitions.items():
        found.update(_of_rows(name, partition))
    for lease in leases_of(state):
        found.update({("lease", lease.number, at): fate for at, fate in enumerate(lease.fate.tolist())})
    for clear in (*state.clears.pending.values(), *state.clears.closed.values()):
        found["clear", clear.number] = clear.state
    return found


def _of_rows(name: str, partition: Partition) -> Iterable[tuple[Thing, State | None]]:
    rows = partition.rows
    used = slice(1, rows.n)
    for index, state in zip(rows.global_index[used].tolist(), rows.state[used].tolist(), strict=True):
        yield ("row", name, index), state
    held = rows.held()
    for task, kept in partition.tasks.items():
        for index, state in zip(rows.global_index[held].tolist(), kept.state[held].tolist(), strict=True):
            yield ("task", name, task, index), state
