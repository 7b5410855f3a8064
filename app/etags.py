"""Entity tags: they differ by boot or epoch, revision, and form (what was asked for): none outlives its state."""

import re
import zlib
from collections.abc import Callable

from .incoming import Incoming

_TAG = re.compile(r'(?:W/)?("[^"]*")')


def etag_of(call: Incoming, form: str = "") -> Callable[[int], str]:
    """The tag of a partition's revision in this form."""
    epoch, boot = call.edge.executor.reading.epoch, call.edge.boot
    form_id = f"{zlib.crc32(form.encode()):x}" if form else "p"
    return lambda revision: f'"{boot}.{epoch}.{revision}.{form_id}"'


def names(header: str | None, tag: str) -> bool:
    """Whether an If-Match or If-None-Match header names `tag`."""
    if header is None:
        return False
    return header.strip() == "*" or tag in _TAG.findall(header)
