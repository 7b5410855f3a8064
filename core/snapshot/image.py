"""The state as bytes, and back: by columns, of the classes that `members.py` names.

A thing that two others hold is written once and referred to, so that it is one thing again; equal cells are one `bytes`
again.
"""

from typing import Final

from core.state.service import ServiceState

from .image_reader import ImageReader
from .image_writer import ImageWriter

STATE: Final = ("partitions", "deleted", "leases", "clears", "replies", "next_index", "revision", "epoch", "history")
"""What a snapshot holds; the rest of the state is derived, or what the service was started with."""


def image(state: ServiceState) -> bytes:
    """The state between two changes, as bytes; the same state gives the same bytes."""
    return ImageWriter().written([getattr(state, name) for name in STATE])


def restore(state: ServiceState, data: bytes) -> None:
    """Make the state that of an image; its deadlines are still to be set (core.operations.expiry).

    Raises ValueError for bytes that are no image of this version.
    """
    values, bounds = ImageReader(state.words).read(data), state.replies
    if len(values) != len(STATE):
        raise ValueError(f"an image has {len(STATE)} parts, these bytes {len(values)}")
    for name, value in zip(STATE, values, strict=True):
        setattr(state, name, value)
    state.replies.bounded_as(bounds)
    for lease in state.leases.open.values():
        lease.began = state.clock()
    for lease in state.leases.closed.values():
        lease.began = state.clock()
        lease.close()
