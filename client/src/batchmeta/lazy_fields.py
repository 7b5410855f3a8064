"""Columns or schemas by field, each decoded at first access."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class Columns(Mapping[str, T]):
    """By field, each made at its first use from what stands under that name in `parts`."""

    __slots__ = ("_made", "_make", "_parts")

    def __init__(self, parts: Mapping[str, Any], make: Callable[..., T]) -> None:
        self._parts = parts
        self._make = make
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
    """Of a reply, where a part may refer to another one for a column that both have (contract#share-columns).

    `make(part, received)` asks `referred` for that one. `full(parts, name)` is the part with the column's own JSON.
    """

    __slots__ = ("_full",)

    def __init__(
        self,
        parts: Mapping[str, U],
        make: Callable[[U, "Received[T]"], T],
        full: Callable[[Mapping[str, U], str], U],
    ) -> None:
        super().__init__(parts, make)
        self._full: Callable[[Mapping[str, Any], str], Any] = full

    def __getitem__(self, name: str) -> T:
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = self._make(self._parts[name], self)
        return made

    def referred(self, name: str) -> T:
        """What another part refers to. ValueError if that is not there, or refers to a third one."""
        if name not in self._parts or self._full(self._parts, name) is not self._parts[name]:
            raise no_column(name)
        return self[name]

    def to_wire(self) -> dict[str, Any]:
        """By field, what each was or will be made of, no column told by reference."""
        return {name: self._full(self._parts, name) for name in self._parts}


def no_column(name: str) -> ValueError:
    """The error of a reference that leads nowhere."""
    return ValueError(f"a column is told as that of {name!r}, which has none of its own")
