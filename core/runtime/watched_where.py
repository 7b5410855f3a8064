"""Finds the waiting claims whose `where` a touched row fulfils. The row is decoded once, however many claims wait.

A predicate that names values (`==`, `in`) is found by what the row has at its path; the others are tried on each row.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

from core.state.where import NO_OPERAND, Condition, Operand, Where, operand_of, value_at

from .countdown import Countdown

Path = tuple[str, ...]
Test = Callable[[object], bool]
_Place = tuple[Path, Operand]


class _Predicate:
    """One `where`: what each of its conditions tests, and the calls that wait with it."""

    __slots__ = ("count", "tests")

    def __init__(self, where: Where) -> None:
        self.tests: list[tuple[Path, Test]] = [(one.path, one.test()) for one in where.conditions]
        self.count = Countdown()

    def is_fulfilled(self, values: "_Values") -> bool:
        """By a row with these values."""
        for path, test in self.tests:  # noqa: SIM110  (all() costs twice as much, for each who waits)
            if not test(values[path]):
                return False
        return True


class _Values(dict[Path, object]):
    """What a row has at the paths that were asked for."""

    def __init__(self, cell: bytes) -> None:
        super().__init__()
        self._value = value_at(cell)

    def __missing__(self, path: Path) -> object:
        found = self[path] = self._value(path)
        return found


class WatchedWhere:
    """Calls by their `where`, once for each predicate."""

    __slots__ = ("_named", "_paths", "_predicates")

    def __init__(self) -> None:
        self._predicates: dict[Where, _Predicate] = {}
        self._named: dict[_Place, dict[Where, _Predicate]] = {}  # who names this value; at no path those that name none
        self._paths: Counter[Path] = Counter()  # those of `_named`

    def __len__(self) -> int:
        return len(self._predicates)

    def put(self, number: int, where: Where, lacks: int) -> None:
        """This call is due once so many rows that fulfil it have come."""
        one = self._predicates.get(where)
        if one is None:
            one = self._predicates[where] = _Predicate(where)
            for place in _places(where):
                self._named.setdefault(place, {})[where] = one
                self._paths[place[0]] += 1
        one.count.put(number, lacks)

    def leave(self, number: int, where: Where) -> None:
        """This call waits no more."""
        one = self._predicates.get(where)
        if one is None:
            return
        one.count.leave(number)
        if not len(one.count):
            del self._predicates[where]
            for place in _places(where):
                self._forget(place, where)

    def _forget(self, place: _Place, where: Where) -> None:
        del self._named[place][where]
        if not self._named[place]:
            del self._named[place]
        self._paths[place[0]] -= 1
        if not self._paths[place[0]]:
            del self._paths[place[0]]

    def come(self, cells: Iterable[bytes]) -> Iterator[int]:
        """Rows with these custom metas have come; who is due by that."""
        for cell in cells:
            values = _Values(cell)
            for path in self._paths:
                for one in self._named.get((path, operand_of(values[path])), _NOBODY).values():
                    if one.is_fulfilled(values):
                        yield from one.count.come(1)


_NOBODY: Mapping[Where, _Predicate] = MappingProxyType({})


def _places(where: Where) -> list[_Place]:
    """Where a predicate is found: at the values that one condition of it names, if any."""
    named: Condition | None = next((one for one in where.conditions if one.op in ("==", "in")), None)
    return [((), NO_OPERAND)] if named is None else [(named.path, operand) for operand in named.operands]
