"""Decodes a large body member by member: each call of the decoder holds the interpreter, and with it the loop.

A body of 1,024 x 28 takes milliseconds at once; in pieces none takes more than a fraction of one.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Raw

T = TypeVar("T", bound=msgspec.Struct)
_members = msgspec.json.Decoder(dict[str, Raw])


class PieceError(msgspec.ValidationError):
    """As the decoder's own, with the place of the piece put before that in the piece."""


class Pieces(Generic[T]):
    """As `msgspec.json.Decoder(takes)`, for one Struct whose unknown members are refused."""

    def __init__(self, takes: type[T]) -> None:
        self._takes = takes
        hints = get_type_hints(takes, include_extras=True)
        self._decoders = {field.encode_name: _decoder(hints[field.name]) for field in msgspec.structs.fields(takes)}
        self._whole = msgspec.json.Decoder(takes)

    def decode(self, body: bytes) -> T:
        """The Struct. Raises msgspec.DecodeError, ValidationError."""
        if body.lstrip()[:1] != b"{":
            return self._whole.decode(body)  # which says what is wrong
        try:
            parts = _members.decode(body)
        except RecursionError:
            return self._whole.decode(body)  # which says where
        if not parts.keys() <= self._decoders.keys():
            unknown = next(name for name in parts if name not in self._decoders)
            raise PieceError(f"Object contains unknown field `{unknown}`")
        try:
            return self._takes(**{name: self._decoders[name](raw, f".{name}") for name, raw in parts.items()})
        except TypeError:
            return self._whole.decode(body)  # a member is missing


def _decoder(hint: Any) -> Callable[[Raw, str], Any]:
    for option in (hint, *get_args(hint)):
        if get_origin(option) is dict:
            key, value = get_args(option)
            parts = dict[key, Raw]  # type: ignore[valid-type]
            return _by_name(parts if option is hint else parts | None, value)
    return _single(msgspec.json.Decoder(hint))


def _single(decoder: "msgspec.json.Decoder[Any]") -> Callable[[Raw, str], Any]:
    def decode(raw: Raw, place: str) -> Any:
        try:
            return decoder.decode(raw)
        except msgspec.ValidationError as error:
            text = str(error)
            before, at, inside = text.rpartition("`$") if " - at " in text else (f"{text} - at ", "`$", "`")
            raise PieceError(f"{before}{at}{place}{inside}") from error

    return decode


def _by_name(parts_type: Any, value: Any) -> Callable[[Raw, str], Any]:
    names = _single(msgspec.json.Decoder(parts_type))
    single = _single(msgspec.json.Decoder(value))

    def decode(raw: Raw, place: str) -> Any:
        parts = names(raw, place)
        return None if parts is None else {name: single(part, f"{place}[...]") for name, part in parts.items()}

    return decode
