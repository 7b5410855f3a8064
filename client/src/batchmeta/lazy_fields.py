"""Columns or schemas by field, each decoded at first access."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class Columns(Mapping[str, T]):
    """By field, each made at its first use from what stands under that name in `parts`."""

    __slots__ = ("_made", "_make", "_parts")

    def __init__(self, parts: Mapping[str, U], make: Callable[[U], T]) -> None:
        self._parts: Mapping[str, Any] = parts
        self._make: Callable[[Any], T] = make
        self._made: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = self._make(self._parts[name])
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __contains__(self, name: object) -> bool:
        return name in self._parts

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return (dict, (dict(self),))


class Received(Columns[T]):
    """Of a reply: `to_wire` gives its parts as they came, looked at or not."""

    __slots__ = ()

    def to_wire(self) -> dict[str, Any]:
        """By field, what each was or will be made of."""
        return dict(self._parts)
