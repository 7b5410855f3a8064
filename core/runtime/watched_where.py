"""Waiting claims with a `where`: rows that came are decoded once, and held against the predicates they may fulfil.

A predicate that names values (`==`, `in`) is found by what the row has at its path; the others are tried on each row.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from core.state.where import NO_OPERAND, Condition, Operand, Where, operand_of, value_at

from .countdown import Countdown

Path = tuple[str, ...]
Test = Callable[[object], bool]
_Place = tuple[Path, Operand]


class WatchedWhere:
    """Calls by their `where`, once for each predicate."""

    __slots__ = ("_counts", "_named", "_paths", "_tests")

    def __init__(self) -> None:
        self._counts: dict[Where, Countdown] = {}
        self._tests: dict[Where, Sequence[tuple[Path, Test]]] = {}
        self._named: dict[_Place, dict[Where, None]] = {}  # who names this value; at no path those that name none
        self._paths: Counter[Path] = Counter()  # those of `_named`

    def __len__(self) -> int:
        return len(self._counts)

    def put(self, number: int, where: Where, lacks: int) -> None:
        """This call is due once so many rows that fulfil it have come."""
        if where not in self._counts:
            self._counts[where] = Countdown()
            self._tests[where] = [(one.path, one.test()) for one in where.conditions]
            for place in _places(where):
                self._named.setdefault(place, {})[where] = None
                self._paths[place[0]] += 1
        self._counts[where].put(number, lacks)

    def leave(self, number: int, where: Where) -> None:
        """This call waits no more."""
        count = self._counts.get(where)
        if count is None:
            return
        count.leave(number)
        if not len(count):
            del self._counts[where], self._tests[where]
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
            value = value_at(cell)
            for path in self._paths:
                for where in self._named.get((path, operand_of(value(path))), ()):
                    if all(test(value(path)) for path, test in self._tests[where]):
                        yield from self._counts[where].come(1)


def _places(where: Where) -> list[_Place]:
    """Where a predicate is found: at the values that one condition of it names, if any."""
    named: Condition | None = next((one for one in where.conditions if one.op in ("==", "in")), None)
    return [((), NO_OPERAND)] if named is None else [(named.path, operand) for operand in named.operands]
