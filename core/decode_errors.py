"""A decoder's message as a caller reads it: where a member has a fixed set of values, with these."""

import re
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin, get_type_hints

from msgspec import Struct

_MEMBER = re.compile(r"\.(\w+)(?:\[\d+\])*$")


def advice(message: str, takes: Any, place: str) -> str:
    """msgspec's `message` on the member that `place` ends with, somewhere in what `takes` holds."""
    message = f"{message[:1].lower()}{message[1:]}"
    member = _MEMBER.search(place)
    if member is None or not message.startswith("invalid enum value"):
        return message
    values = dict(_sets(takes, "")).get(member[1], ())
    return f"{message}: use one of {', '.join(values)}" if values else message


def _sets(hint: Any, member: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Members and their values; a member has the same ones wherever in a request it stands."""
    if get_origin(hint) is Literal:
        yield member, get_args(hint)
    elif isinstance(hint, type) and issubclass(hint, Struct):
        for name, inner in get_type_hints(hint, include_extras=True).items():
            yield from _sets(inner, name)
    else:
        for inner in get_args(hint):
            yield from _sets(inner, member)
