"""Finds a member that appears twice in one JSON object: decoders disagree on the value of such an object.

All texts here are valid JSON: a decoder has accepted them before.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec

_KEY = re.compile(rb'\s*[{,]\s*("[^"\\]*(?:\\.[^"\\]*)*")\s*:\s*', re.DOTALL)


class _Twice(str):
    """The repeated name, in place of the object that has it."""

    __slots__ = ()


def _checked(pairs: list[tuple[str, object]]) -> object:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    return _Twice(Counter(name for name, _ in pairs).most_common(1)[0][0])


_parse = json.JSONDecoder(object_pairs_hook=_checked, parse_int=str).raw_decode


def repeated(text: bytes) -> str | None:
    """The place of a repeated member, such as `.a[0].b`; None without one, or where the text cannot be parsed."""
    try:
        parsed, _ = _parse(text.decode().lstrip())
    except ValueError:
        return None
    place = next(_places(parsed, ""), None)
    return None if place is None else place.encode(errors="backslashreplace").decode()  # lone surrogates


def _places(value: object, place: str) -> Iterator[str]:
    if isinstance(value, _Twice):
        yield f"{place}.{value}"
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from _places(part, f"{place}.{name}")
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield from _places(part, f"{place}[{at}]")


def is_plain(text: bytes, again: bytes) -> bool:
    """A quick check that is True for nearly every `text` without a repeated member. `again`: its value, encoded again.

    Decoding drops a repeated member and its colon. Colons within strings are in both texts, as long as no string is
    written with escapes.
    """
    return text == again or (b"\\" not in text and text.count(b":") == again.count(b":"))


def repeated_name(text: bytes, members: Mapping[str, msgspec.Raw]) -> str | None:
    """The name that appears twice in the object `text` itself, not in objects within it; None without one.

    The decoder that made `members` keeps the first position and the last value of a name. Without a repeated name the
    text is these members in this order, and nothing else.
    """
    at = 0
    for name, raw in members.items():
        found, value = _key(text, at), bytes(raw)
        if found is None or found[0] != name:
            return None if found is None else found[0]
        if text[found[1] : found[1] + len(value)] != value:
            return name
        at = found[1] + len(value)
    last = _key(text, at)
    return None if last is None else last[0]


def _key(text: bytes, at: int) -> tuple[str, int] | None:
    """The next name and where its value begins."""
    match = _KEY.match(text, at)
    return None if match is None else (msgspec.json.decode(match[1]), match.end())
