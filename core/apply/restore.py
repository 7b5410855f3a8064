"""Events of the whole history: it gets its name, or goes back to the state of an image.

A restore replaces the state by that of the image. Index, revision and epoch only ever rise: what was given out is not
given out again, nor are claim and clear ids, which are made of revisions. Where the image is of another history, what
that gave out since is unknown, so that all three counters go on far beyond. Leases and shares of samplers end: who
had them worked in a time that is over.
"""

from typing import Final

from core.events import Begun, Restored
from core.snapshot.image import restore as read_image
from core.state.deadlines import Deadlines
from core.state.service import ServiceState

JUMP: Final = 2**32


def jump_to(history: str, of_image: str) -> int:
    """What is added to index, revision and epoch, by the names of both histories: 0 where they are the same one."""
    return 0 if history and history == of_image else JUMP


def begin(state: ServiceState, event: Begun) -> None:
    """This history has a name from now on."""
    state.history = event.history


def restore(state: ServiceState, event: Restored) -> None:
    """Raises ValueError, with the state changed in part, for bytes that are no image."""
    revision, next_index, epoch, history = state.revision, state.next_index, state.epoch, state.history
    read_image(state, event.image)
    jump = jump_to(history, state.history)
    state.next_index = max(state.next_index, next_index) + jump
    state.epoch = max(state.epoch, epoch) + max(jump, 1)
    state.revision = revision
    state.deleted = dict.fromkeys(state.deleted, revision)  # there may have been one of that name in between
    state.ttl_deadlines = Deadlines()
    for partition in state.partitions.values():
        partition.revision = revision
        partition.key_history.start_over(revision)
    if event.releases:
        _release_all(state)


def _release_all(state: ServiceState) -> None:
    """Nothing is leased any more, and no share is set aside: those rows are free, and were handed out once less."""
    for partition in state.partitions.values():
        partition.lose_all()
        for task in partition.tasks.values():
            task.release_all()
    state.leases.settle(list(state.leases.open.values()))
