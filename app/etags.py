"""Makes and compares entity tags.

A tag holds boot, epoch, revision and form (what was asked for), so that none outlives its state.
"""

import zlib
from collections.abc import Callable

from .incoming import Incoming


def etag_of(call: Incoming, form: str = "") -> Callable[[int], str]:
    """The tag of a partition's revision in this form."""
    epoch, boot = call.edge.executor.reading.epoch, call.edge.boot
    form_id = f"{zlib.crc32(form.encode()):x}" if form else "p"
    return lambda revision: f'"{boot}.{epoch}.{revision}.{form_id}"'


def names(header: str, tag: str) -> bool:
    """Whether an If-Match names `tag`, by strong comparison: no weak tag does (RFC 9110 section 8.8.3.2)."""
    return header.strip() == "*" or tag in (part.strip() for part in header.split(","))


def names_weakly(header: str | None, tag: str) -> bool:
    """Whether an If-None-Match names `tag`, by weak comparison: W/ makes no difference."""
    return header is not None and names(header.replace('W/"', '"'), tag)
