"""Production status and the backend-meta lookup, byte for byte what contract#batch-meta says of one cell.

The vectorised answers are held against plain loops over plain dicts: per sample, per field, nothing clever.
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.engine import Engine
from core.operations.claim import Claimed, ClaimRequest, claim_now
from core.operations.delete import delete
from core.operations.partitions import put_partition
from core.operations.produce import RowWrite, patch_backend_meta
from core.operations.read import read, read_backend_meta
from core.reading.batch import Batch, BatchColumns, View
from core.reading.selectors import Selector
from core.samplers import Sequential
from core.state.cells import encode
from core.state.cells.json_cells import Const
from tests.core.world import MANY, TENSOR, Schema, add, add_keys, look, new_engine, write

P = "train@0"
NEVER_GIVEN_OUT = (10_000, 2**62, 2**63 - 1)


@dataclass
class Plain:
    """What was done, as dicts: per index the fields it has, and per cell the bytes recorded."""

    engine: Engine
    names: list[str]
    rows: dict[int, set[str]] = field(default_factory=dict)
    cells: dict[tuple[int, str], bytes] = field(default_factory=dict)
    foreign: list[int] = field(default_factory=list)
    cleared: list[int] = field(default_factory=list)

    def status(self, indexes: Sequence[int], fields: Sequence[str]) -> bytes:
        """The definition: 1 when every requested field that the partition knows is produced for the sample."""
        out = bytearray()
        for index in indexes:
            known = 0
            lacking = 0
            for name in fields:
                if name in self.known():
                    known += 1
                    if index not in self.rows or name not in self.rows[index]:
                        lacking += 1
            out.append(1 if known and not lacking else 0)
        return bytes(out)

    def known(self) -> set[str]:
        return {"declared"}.union(*self.rows.values())

    def column(self, indexes: Sequence[int], name: str) -> bytes:
        """The definition: the cell recorded for this sample and field, else null; `const` for two or more equal."""
        cells = [self.cells.get((index, name), b"null") for index in indexes]
        if len(cells) >= 2 and len(set(cells)) == 1:
            return b'{"const":' + cells[0] + b"}"
        return b"[" + b",".join(cells) + b"]"


def grown(seed: int, rows: int, fields: int, share: float, clear: bool) -> Plain:
    """A partition of `rows` rows x `fields` fields with a `share` of its cells produced, beside another partition."""
    chance = random.Random(seed)
    plain = Plain(new_engine(), [f"f{i}" for i in range(fields)])
    put_partition(plain.engine, P, None, None, None, {"declared": Schema("int64", [4])})
    while len(plain.rows) < rows:
        indexes = add_keys(plain.engine, P, [f"k{len(plain.rows) + i}" for i in range(min(3, rows - len(plain.rows)))])
        plain.rows |= {index: set() for index in indexes}
        plain.foreign += add(plain.engine, "other", 1)
    if plain.foreign:
        write(plain.engine, "other", plain.foreign, plain.names)
    for index in list(plain.rows):
        made = [name for name in plain.names if chance.random() < share]
        write(plain.engine, P, [index], made)
        plain.rows[index].update(made)
    if clear and rows > 2:
        plain.cleared = chance.sample(sorted(plain.rows), rows // 3)
        delete(plain.engine, P, Selector(indexes=plain.cleared))
        plain.rows = {index: has for index, has in plain.rows.items() if index not in plain.cleared}
    return plain


@st.composite
def cases(draw: st.DrawFn) -> tuple[Plain, list[int], list[str]]:
    """A partition, the indexes asked for in any order with repetitions, and the fields asked for."""
    fields = draw(st.sampled_from([1, 5, 63, 64, 65, 70, 128, 129, 140]))
    share = draw(st.sampled_from([0.0, 0.5, 0.98, 1.0]))
    plain = grown(draw(st.integers(0, 999)), draw(st.integers(0, 9)), fields, share, draw(st.booleans()))
    there = [*plain.rows, *plain.foreign, *plain.cleared, *NEVER_GIVEN_OUT]
    indexes = draw(st.lists(st.sampled_from(there), max_size=25))
    names = st.sampled_from([*plain.names, "declared", "no_such_field", "nor_this"])
    some = st.lists(names, max_size=6)
    return plain, indexes, draw(st.one_of(some, st.just(plain.names), st.just(plain.names[::-1] * 2)))


@settings(max_examples=120, deadline=None, derandomize=True)
@given(cases())
def test_status_is_byte_for_byte_that_of_the_plain_loop(case: tuple[Plain, list[int], list[str]]) -> None:
    plain, indexes, fields = case
    batch = look(plain.engine, P, indexes, fields)
    expected = plain.status(indexes, fields)
    assert batch.status.tobytes() == expected
    assert encode.array(batch.status) == json.dumps(list(expected)).replace(" ", "").encode()
    assert batch.global_indexes.tolist() == indexes
    assert list(batch.fields) == [name for name in dict.fromkeys(fields) if name in plain.known()]
    assert list(batch.missing_fields) == [name for name in dict.fromkeys(fields) if name not in plain.known()]
    for name, column in orjson.loads(batch.field_status or b"").items():
        bits = [column["const"]] * len(indexes) if isinstance(column, dict) else column
        assert bytes(bits) == plain.status(indexes, [name])


@settings(max_examples=40, deadline=None, derandomize=True)
@given(cases())
def test_by_keys_by_indexes_and_of_the_whole_partition_it_gives_the_same_bytes(
    case: tuple[Plain, list[int], list[str]],
) -> None:
    plain, _, fields = case
    engine, indexes, view = plain.engine, sorted(plain.rows), View(tuple(fields))
    keys = _keys(plain, indexes)
    expected = plain.status(indexes, fields)
    whole = b"".join(page.status.tobytes() for page in _pages(engine, view, 4))
    assert whole == expected
    assert read(engine, P, Selector(indexes=indexes), view, False, MANY, None).status.tobytes() == expected
    by_keys = read(engine, P, Selector(keys=[*keys, "no such key"]), view, False, MANY, None)
    assert by_keys.status.tobytes() == expected
    assert by_keys.missing_keys == ("no such key",)


def _pages(engine: Engine, view: View, limit: int) -> Iterator[Batch]:
    cursor: str | None = None
    while True:
        page = read(engine, P, Selector(), view, False, limit, cursor)
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return


def _keys(plain: Plain, indexes: list[int]) -> list[str]:
    column = orjson.loads(look(plain.engine, P, indexes, [], expand=True).keys or b"[]")
    return [key for key in column if key is not None]


def test_all_users_go_through_the_same_code(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = grown(1, 6, 3, 1.0, clear=False)
    sizes: list[int] = []
    vectorised = BatchColumns.status
    monkeypatch.setattr(BatchColumns, "status", lambda cut: (sizes.append(len(cut.rows)), vectorised(cut))[1])
    view, indexes = View(), sorted(plain.rows)
    read(plain.engine, P, Selector(indexes=indexes[:2]), view, False, MANY, None)
    read(plain.engine, P, Selector(keys=_keys(plain, indexes)[:3]), view, False, MANY, None)
    sizes.remove(6)
    read(plain.engine, P, Selector(), view, False, MANY, None)
    wanted = ClaimRequest("t", ("f0",), 4, 4, 0, Sequential(), view)
    assert isinstance(claim_now(plain.engine, P, wanted), Claimed)
    add(plain.engine, P, 5)
    assert sizes == [2, 3, 6, 4, 5]


PATCH = st.tuples(
    st.lists(st.integers(0, 7), min_size=1, max_size=4, unique=True),
    st.sampled_from([Const(b'{"at":"moved"}'), Const(b"null"), None]),
)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    recorded=st.lists(st.sampled_from(["const", "distinct", "none", "mixed", "unproduced"]), min_size=1, max_size=5),
    patches=st.lists(PATCH, max_size=3),
    clear=st.booleans(),
    asked=st.lists(st.sampled_from([*range(8), 500, 2**63 - 1]), max_size=14),
    expand=st.booleans(),
)
@example(recorded=["const"], patches=[([0], Const(b"null"))], clear=True, asked=[0, 1, 500], expand=False)
def test_the_backend_meta_lookup_is_that_of_a_plain_dict(
    recorded: list[str], patches: list[tuple[list[int], Const | None]], clear: bool, asked: list[int], expand: bool
) -> None:
    plain = Plain(new_engine(), [f"f{i}" for i in range(len(recorded))])
    plain.rows = {index: set() for index in add(plain.engine, P, 8)}
    for name, how in zip(plain.names, recorded, strict=True):
        _record(plain, name, how)
    for indexes, column in patches:
        _patch(plain, indexes, column)
    if clear:
        delete(plain.engine, P, Selector(indexes=[2, 3]))
        plain.cells = {cell: value for cell, value in plain.cells.items() if cell[0] not in (2, 3)}
    found = read_backend_meta(plain.engine, P, Selector(indexes=asked), View(expand=expand), MANY, None)
    batch = look(plain.engine, P, asked, expand=expand)
    assert found.columns == batch.backend_meta
    columns = b"".join(found.columns)
    for name, column in msgspec.json.decode(columns, type=dict[str, msgspec.Raw]).items():
        expected = plain.column(asked, name)
        assert bytes(column) == (_expanded(expected, len(asked)) if expand else expected)


def _record(plain: Plain, name: str, how: str) -> None:
    rows = {"unproduced": [0], "mixed": [1, 3, 5, 7]}.get(how, list(range(8)))
    distinct = [b'{"slot":%d}' % row for row in rows]
    column = {"const": Const(b'{"node":"a"}'), "distinct": distinct, "mixed": distinct}.get(how)
    write(plain.engine, P, rows, {name: TENSOR}, {} if column is None else {name: column})
    cells = [column.const] * 8 if isinstance(column, Const) else column or []
    plain.cells |= {(row, name): cell for row, cell in zip(rows, cells, strict=False)}


def _patch(plain: Plain, indexes: list[int], column: Const | None) -> None:
    name = plain.names[-1]
    given = column or [b"[%d]" % index for index in indexes]
    patch_backend_meta(plain.engine, P, RowWrite(indexes), {name: given})
    cells = [given.const] * len(indexes) if isinstance(given, Const) else given
    plain.cells |= {(index, name): cell for index, cell in zip(indexes, cells, strict=True)}


def _expanded(column: bytes, rows: int) -> bytes:
    value = column[len(b'{"const":') : -1]
    return b"[" + b",".join([value] * rows) + b"]" if column.startswith(b'{"const":') else column
