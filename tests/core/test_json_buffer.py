"""Cells in one buffer are the cells of a plain list, however they were written, replaced, cleared and moved."""

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from core.state.cells import encode, json_buffer
from core.state.cells.json_buffer import JsonBuffer
from core.state.cells.json_cells import NULL

ROWS = 12
cells = st.sampled_from([NULL, b"1", b"22", b'"a1,"', b'{"x":[1,2]}', b'"' + b"y" * 40 + b'"', b"[]"])
some = st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=ROWS, unique=True)
steps = st.one_of(
    st.tuples(st.just("one"), some, cells),
    st.tuples(st.just("each"), some, st.lists(cells, min_size=ROWS, max_size=ROWS)),
    st.tuples(st.just("clear"), some, st.none()),
    st.tuples(st.just("keep"), st.permutations(range(ROWS)), st.none()),
)


def walk(path: list[tuple[str, list[int], object]]) -> tuple[JsonBuffer, list[bytes]]:
    kept, plain = JsonBuffer(ROWS), [NULL] * ROWS
    for verb, rows, value in path:
        places = np.array(rows, np.int64)
        if verb == "keep":
            kept.compact(places, ROWS)
            plain = [plain[row] for row in rows]
        elif verb == "clear":
            kept.clear(places)
        else:
            given_cells = value if isinstance(value, bytes) else list(value)[: len(rows)]  # type: ignore[call-overload]
            kept.put(places, given_cells)
        for at, row in enumerate(rows if verb in ("one", "each", "clear") else ()):
            plain[row] = NULL if verb == "clear" else value if verb == "one" else value[at]  # type: ignore[index, assignment]
    return kept, plain


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(steps, max_size=12), st.lists(st.integers(0, ROWS - 1), max_size=20), st.booleans())
def test_it_reads_as_a_plain_list(path: list[tuple[str, list[int], object]], asked: list[int], expand: bool) -> None:
    slack, json_buffer.SLACK = json_buffer.SLACK, 40  # so that it is written anew often
    try:
        kept, plain = walk(path)
    finally:
        json_buffer.SLACK = slack
    rows = np.array(asked, np.int64)
    assert kept.cells(rows) == [plain[row] for row in asked]
    assert kept.cells(slice(2, 9)) == plain[2:9]
    assert kept.recorded().tolist() == [row for row, cell in enumerate(plain) if cell != NULL]
    for chosen, meant in ((rows, [plain[row] for row in asked]), (slice(0, ROWS), plain)):
        text, is_even = kept.joined(chosen)
        assert text == b",".join(meant)
        assert b"".join(encode.folded(text, len(meant), is_even, expand)) == encode.column(meant, expand)


def test_cells_that_only_look_alike_are_no_constant() -> None:
    kept = JsonBuffer(2)
    kept.put(np.arange(2), [b"1", b'"a1,"'])
    assert json.loads(b"".join(encode.folded(*_column(kept, 2), False))) == [1, "a1,"]


def _column(kept: JsonBuffer, rows: int) -> tuple[bytes | memoryview, int, bool]:
    text, is_even = kept.joined(slice(0, rows))
    return text, rows, is_even


def test_what_was_read_stays_as_it_was_while_cells_are_written() -> None:
    kept, rows = JsonBuffer(4), np.arange(4)
    kept.put(rows, [b"1", b"22", b"333", b"4444"])
    seen, _ = kept.joined(slice(0, 4))
    assert isinstance(seen, memoryview)  # nothing was copied
    kept.put(rows[:2], [b"5", b"6" * json_buffer.SLACK])
    kept.put(rows[:2], [b"7", b"8" * json_buffer.SLACK])
    kept.put(rows[:2], [b"9", b"10"])  # and now it was written anew
    assert len(kept.text) < json_buffer.SLACK
    assert bytes(seen) == b"1,22,333,4444"
    assert kept.cells(rows) == [b"9", b"10", b"333", b"4444"]


def test_what_was_replaced_is_given_back() -> None:
    kept = JsonBuffer(64)
    rows = np.arange(64)
    for number in range(200):
        kept.put(rows, [b'{"at":%d}' % (number * 1000 + row) for row in range(64)])
        kept.put(rows[:1], b'"' + b"z" * 5000 + b'"')
    assert len(kept.text) < 200_000
    kept.clear(rows)
    kept.compact(rows, 64)
    assert kept.text == b"null,"


def test_a_cell_of_many_rows_stands_once() -> None:
    kept = JsonBuffer(1000)
    kept.put(np.arange(1000), b'"' + b"x" * 4000 + b'"')
    assert len(kept.text) < 4100
    kept.compact(np.arange(1000), 1000)
    assert len(kept.text) < 4100
    assert kept.cells(slice(998, 1000)) == [b'"' + b"x" * 4000 + b'"'] * 2
