"""Reads the header lines of a request by name: lines of one list are joined, and what has one value may stand once.

RFC 9110 section 5.3, RFC 9112 section 3.2. What a value means is said where it is used.
"""

from collections.abc import Sequence

from core.errors import Invalid, Refused

from .errors import BadRequest

Lines = Sequence[tuple[bytes, bytes]]
_ONE_VALUE = frozenset(
    {b"content-length", b"content-type", b"host", b"idempotency-key", b"origin", b"sec-fetch-site", b"x-epoch"}
)


def by_name(lines: Lines) -> dict[bytes, bytes]:
    """Each name once, in lower case as the server gives it."""
    headers = dict(lines)
    return headers if len(headers) == len(lines) else _joined(lines)


def _joined(lines: Lines) -> dict[bytes, bytes]:
    values: dict[bytes, list[bytes]] = {}
    for name, value in lines:
        values.setdefault(name, []).append(value)
    return {name: b", ".join(parts) for name, parts in values.items()}


def check_once(lines: Lines) -> None:
    """Raises BadRequest or Invalid where one with one value stands twice: which one counts is nobody's guess."""
    seen: set[bytes] = set()
    for name, _ in lines:
        if name in seen and name in _ONE_VALUE:
            raise _twice(name.decode("latin-1").title())
        seen.add(name)


def _twice(name: str) -> Refused:
    msg = "stands twice: send one"
    kind = BadRequest if name == "Host" else Invalid
    return kind(f"header {name} {msg}", errors=[(f"header.{name}", msg)])
