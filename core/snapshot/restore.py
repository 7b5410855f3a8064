"""The state goes back to that of an image; what tells one moment from another never does.

Indexes, revisions (and the claim and clear ids that are made of them) and epochs that were given out are not given out
again. Where the image is of a history that this one does not hold, what was given out since cannot be known: all three
go on far beyond. Leases and shares of samplers end: who had them is of a time that is over.
"""

from typing import TYPE_CHECKING, Final

from core.state.deadlines import Deadlines

from .image import restore

if TYPE_CHECKING:
    from core.engine import Engine

JUMP: Final = 2**32


def beyond(history: str, of_image: str) -> int:
    """How far index, revision and epoch go on beyond an image, by the names of both histories."""
    return 0 if history and history == of_image else JUMP


def take_over(engine: "Engine", image: bytes, revision: int) -> None:
    """Go back to `image` at this revision. Raises ValueError, half way through, for bytes that are none."""
    next_index, epoch, history = engine.next_index, engine.epoch, engine.history
    restore(engine, image)
    jump = beyond(history, engine.history)
    engine.next_index = max(engine.next_index, next_index) + jump
    engine.epoch = max(engine.epoch, epoch) + max(jump, 1)
    engine.revision = revision
    engine.ttl_deadlines = Deadlines()
    for partition in engine.partitions.values():
        partition.revision = revision
        partition.past.start_over(revision)


def release_all(engine: "Engine") -> None:
    """Nothing is leased any more, and no share is set aside: those rows are free, and were handed out once less."""
    for partition in engine.partitions.values():
        partition.lose_all()
        for task in partition.tasks.values():
            task.release_all()
    engine.leases.settle(list(engine.leases.open.values()))
