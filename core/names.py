"""Names that callers choose: partitions, tasks, workers, keys and fields. A whole list is checked in one pass.

Types and lengths were checked by the wire.
"""

import re
from collections.abc import Iterable, Sequence

from .errors import Invalid

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SEPARATORS = re.compile(r"[\x00-\x1f\x7f-\x9f/\\]")


def check_name(name: str, loc: str) -> None:
    """Partition, task and worker names."""
    if not 1 <= len(name) <= 200 or name in (".", "..") or _SEPARATORS.search(name):
        raise Invalid.at(loc, "must be 1-200 characters, no control characters, no / or \\, and not . or ..")


def check_prefix(prefix: str, loc: str) -> None:
    """What the names of partitions are to begin with; empty: all do."""
    if len(prefix) > 200 or _SEPARATORS.search(prefix):
        raise Invalid.at(
            loc, "begins no name of a partition: at most 200 characters, no control characters, no / or \\"
        )


def check_keys(keys: Sequence[str], loc: str) -> None:
    """Keys of one call, in one pass."""
    if _CONTROL.search("".join(keys)):
        at = next(i for i, key in enumerate(keys) if _CONTROL.search(key))
        raise Invalid.at(f"{loc}[{at}]", "must hold no control characters")


def check_fields(names: Iterable[str], loc: str) -> None:
    """Field names of one call, in one pass."""
    joined = "".join(names)
    if "," in joined or _CONTROL.search(joined):
        at = next(name for name in names if "," in name or _CONTROL.search(name))
        raise Invalid.at(loc, f"field name {at!r} must hold no comma and no control characters")
