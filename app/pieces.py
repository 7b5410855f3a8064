"""Decodes a large body member by member: each call of the decoder holds the interpreter, and with it the loop.

A body of 1,024 x 28 takes milliseconds at once; in pieces none takes more than a fraction of one.
"""

from collections.abc import Callable
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Raw

from core.decode_errors import fault_of, twice, unknown
from core.state.cells.duplicate_members import is_plain, repeated, repeated_name
from core.state.cells.signatures import Memo

T = TypeVar("T", bound=msgspec.Struct)
D = TypeVar("D")
_members = msgspec.json.Decoder(dict[str, Raw])


class Decoder(Generic[D]):
    """As msgspec's, and refuses a member that stands twice in an object; cells, which core checks, may have one."""

    def __init__(self, takes: Any) -> None:
        self._decoder: msgspec.json.Decoder[D] = msgspec.json.Decoder(takes)

    def decode(self, text: bytes | Raw) -> D:
        """The value. Raises msgspec.DecodeError, ValidationError."""
        value = self._decoder.decode(text)
        if not _has_no_members(value) and not is_plain(said := bytes(text), msgspec.json.encode(value)):
            place = repeated(said)
            if place is not None:
                raise twice(place)
        return value


def _has_no_members(value: object) -> bool:
    """A column: of numbers, names or cells, which are many."""
    return isinstance(value, list) and not (value and isinstance(value[0], msgspec.Struct))


class Pieces(Generic[T]):
    """As `msgspec.json.Decoder(takes)`, for one Struct whose unknown members are refused."""

    def __init__(self, takes: type[T]) -> None:
        self._takes = takes
        hints = get_type_hints(takes, include_extras=True)
        self._decoders = {field.encode_name: _decoder(hints[field.name]) for field in msgspec.structs.fields(takes)}
        self._whole: Decoder[T] = Decoder(takes)

    def at_once(self, body: bytes) -> T:
        """As `decode`, without pieces unless something is wrong: they know the name of the member that is."""
        try:
            return self._whole.decode(body)
        except msgspec.ValidationError as error:
            if fault_of(error).is_unnamed:
                self.decode(body)
            raise

    def decode(self, body: bytes) -> T:
        """The Struct. Raises msgspec.DecodeError, ValidationError."""
        if body.lstrip()[:1] != b"{":
            return self._whole.decode(body)  # which says what is wrong
        try:
            parts = _members.decode(body)
        except RecursionError:
            return self._whole.decode(body)  # which says where
        if (name := repeated_name(body, parts)) is not None:
            raise twice(f".{name}")
        if not parts.keys() <= self._decoders.keys():
            raise unknown(next(name for name in parts if name not in self._decoders))
        try:
            return self._takes(**{name: self._decoders[name](raw, f".{name}") for name, raw in parts.items()})
        except TypeError:
            return self._whole.decode(body)  # a member is missing


class Repeated(Pieces[T]):
    """As `Pieces`, for small bodies that callers send again and again: the same bytes are decoded once."""

    MOST: ClassVar[int] = 1024  # bytes of a body that is remembered

    def __init__(self, takes: type[T]) -> None:
        super().__init__(takes)
        self._known: Memo[bytes, T] = Memo()

    def at_once(self, body: bytes) -> T:
        known = self._known.get(body)
        if known is None:
            known = super().at_once(body)
            if len(body) <= self.MOST:
                self._known.put(body, known)
        return known


def _decoder(hint: Any) -> Callable[[Raw, str], Any]:
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    for option in map(_bare, options):
        if get_origin(option) is dict:
            key, value = get_args(option)
            parts = dict[key, Raw]  # type: ignore[valid-type]
            return _by_name(parts | None if NoneType in options else parts, value)
    return _single(Decoder(hint))


def _bare(hint: Any) -> Any:
    """The type without words that the OpenAPI says of it; one with a constraint is kept whole."""
    if get_origin(hint) is not Annotated:
        return hint
    is_words = all(meta == Meta(description=meta.description) for meta in hint.__metadata__)
    return get_args(hint)[0] if is_words else hint


def _single(decoder: "Decoder[Any] | msgspec.json.Decoder[Any]") -> Callable[[Raw, str], Any]:
    def decode(raw: Raw, place: str) -> Any:
        try:
            return decoder.decode(raw)
        except msgspec.ValidationError as error:
            raise fault_of(error).below(place) from error

    return decode


def _by_name(parts_type: Any, value: Any) -> Callable[[Raw, str], Any]:
    names = _single(msgspec.json.Decoder(parts_type))
    single = _single(Decoder(value))

    def decode(raw: Raw, place: str) -> Any:
        parts = names(raw, place)
        if parts is None:
            return None
        if (name := repeated_name(bytes(raw), parts)) is not None:
            raise twice(f"{place}.{name}")
        return {name: single(part, f"{place}.{name}") for name, part in parts.items()}

    return decode
