"""The content of a call: the rows and columns of a write, the selected rows; and its refusal."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.model.plain import Row, Schema
from tests.model.samplers import Condition, passes


class Refusal(Exception):
    """The call is refused; `codes` are the reasons there are, `rows` those that the problem names, where it must."""

    def __init__(self, codes: Iterable[str], rows: Iterable[int] | None = None) -> None:
        self.codes = set(codes)
        self.rows = None if rows is None else sorted(rows)
        super().__init__(sorted(self.codes))


@dataclass
class Write:
    """What a write says of its rows."""

    indexes: list[int] | None = None
    keys: list[str] | None = None
    groups: list[str | int | None] | None = None
    custom: list[dict[str, Any] | None] | None = None
    fields: dict[str, Schema] = field(default_factory=dict)
    backend: dict[str, list[Any]] = field(default_factory=dict)
    ttl: float | None = None
    mode: str = "merge"

    def check_once(self, create: bool) -> None:
        """Each row is named once; with `create`, by its key."""
        codes = {"invalid-request"} if create and self.indexes is not None else set()
        for names, code in ((self.indexes, "duplicate-indexes"), (self.keys, "duplicate-keys")):
            if len(set(names or ())) < len(names or ()):
                raise Refusal({code, *codes})

    def without(self, skipped: Sequence[int | str]) -> "Write":
        """The same, of the other rows."""
        named: Sequence[int | str] = self.indexes if self.indexes is not None else self.keys or ()
        kept = [at for at, one in enumerate(named) if one not in skipped]

        def at(column: list[Any] | None) -> list[Any] | None:
            return None if column is None else [column[i] for i in kept]

        fields = {name: replace(schema, shapes=at(schema.shapes or None) or []) for name, schema in self.fields.items()}
        backend = {name: at(cells) or [] for name, cells in self.backend.items()}
        named_at = (at(self.indexes), at(self.keys), at(self.groups), at(self.custom))
        return Write(*named_at, fields, backend, mode=self.mode)


@dataclass
class Chosen:
    """Which rows a call means: what one of these members says, `everything`, and of those what passes `where`."""

    indexes: list[int] | None = None
    keys: list[str] | None = None
    groups: list[str | int] | None = None
    prefix: str | None = None
    everything: bool = False
    where: list[Condition] | None = None

    def means(self, row: Row) -> bool:
        return passes(row, self.where) and (self.everything or self._names(row))

    def _names(self, row: Row) -> bool:
        named = row.index in (self.indexes or ()) or row.key in (self.keys or ())
        grouped = any((type(row.group), row.group) == (type(group), group) for group in self.groups or ())
        return named or grouped or (self.prefix is not None and (row.key or "").startswith(self.prefix))
