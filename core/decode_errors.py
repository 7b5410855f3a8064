"""Parses msgspec's error text into a place and a message for callers.

No other file looks into msgspec's text, `WORDS - at `PLACE``; one is written here again where a place is put before it.
"""

import re
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

_SAID = re.compile(r"^(.*?)(?: - at (`key` in )?`\$([^`]*)`)?$", re.DOTALL)
_UNKNOWN = re.compile(r"^Object contains unknown field `(.*)`$", re.DOTALL)
_UNNAMED = "[...]"  # how msgspec says "a value of this dict"
_MEMBER = re.compile(r"\.(\w+)(?:\[\d+\])*$")


class DecodeFault(msgspec.ValidationError):
    """As the decoder's own. `place` is below what was decoded: `.keys[3]`; `is_key`: the name of a member there."""

    def __init__(self, words: str, place: str = "", is_key: bool = False) -> None:
        at = f" - at {'`key` in ' if is_key else ''}`${place}`" if place or is_key else ""
        super().__init__(f"{words}{at}")
        self.words, self.place, self.is_key = words, place, is_key

    @property
    def unknown(self) -> str | None:
        """The member that is not known there, where that is what is wrong."""
        match = _UNKNOWN.match(self.words)
        return match[1] if match else None

    @property
    def is_unnamed(self) -> bool:
        """It is in a value of a dict, and the place does not say which."""
        return _UNNAMED in self.place

    def below(self, place: str) -> "DecodeFault":
        """The same, where what was decoded is itself at `place`."""
        return DecodeFault(self.words, f"{place}{self.place}", self.is_key)

    def told(self, takes: Any) -> str:
        """As a caller reads it; where a member has a fixed set of values, with these. `takes`: what was decoded."""
        words = f"{self.words[:1].lower()}{self.words[1:]}"
        member = _MEMBER.search(self.place)
        if member is not None and words.startswith("invalid enum value"):
            values = dict(_sets(takes, "")).get(member[1], ())
            words = f"{words}: use one of {', '.join(values)}" if values else words
        return f"a name here: {words}" if self.is_key else words


def fault_of(error: msgspec.ValidationError) -> DecodeFault:
    """What msgspec raised, taken apart."""
    if isinstance(error, DecodeFault):
        return error
    match = _SAID.match(str(error))
    return DecodeFault(match[1], match[3] or "", match[2] is not None) if match else DecodeFault(str(error))


def unknown(name: str) -> DecodeFault:
    """What msgspec says of a member at the top that is not known."""
    return DecodeFault(f"Object contains unknown field `{name}`")


def twice(place: str) -> DecodeFault:
    """What is said of a member that stands twice; msgspec takes the last."""
    return DecodeFault("Stands twice in one object: leave one of the two out", place)


def _sets(hint: Any, member: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Members and their values; a member has the same ones wherever in a request it stands."""
    if get_origin(hint) is Literal:
        yield member, get_args(hint)
    elif isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        for name, inner in get_type_hints(hint, include_extras=True).items():
            yield from _sets(inner, name)
    else:
        for inner in get_args(hint):
            yield from _sets(inner, member)
