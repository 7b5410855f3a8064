"""Bodies of one form: whatever came before, a produce is read as by the plain decoder, and refused with its words."""

import itertools
import json
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.convert import columns
from app.one_row_body import ProduceReader
from app.pieces import Pieces
from batchmeta.wire.requests import Produce
from core.engine import Engine
from core.errors import Refused
from core.writing.forms import OneRow, fields_of

PLAIN = Pieces(Produce)
NAMES = ("a", "a1", "1a", "x:5]", "a, 7]", '\\"9\\"', "\\u0031", "0", "a:[3]")
NUMBERS = ("0", "5", "17", "07", "-1", "1.0", "1e1", "1E+2", "999999999", "2147483647", "2147483648", "null", "true")
SHAPES = (
    '"lengths":[%s]', '"lengths": [%s]', '"lengths":{"const":%s}', '"shape":[%s]', '"shape":[2, %s]', '"shape":%s',
    '"shapes":[[%s,3]]', '"shapes":{"const":[%s]}', '"lengths":[%s,4]', '"ragged":true,"lengths":[%s]',
    '"shape":[1],"lengths":[%s]', '"lengths":[%s],"lengths":[5]', '"kind":"object"', '"dtype":"int32","shape":[%s]',
)  # fmt: skip
CELLS = ("{}", '{"a":{"const":1}}', '{"a":{"const":[1]}}', '{"a":["x"]}', '{"a":{"const":1},"a":{"const":1}}', "null")
ROWS = (
    '"keys":["k"]',
    '"keys":["k","l"]',
    '"keys":[]',
    '"global_indexes":[0]',
    '"keys":["k"],"global_indexes":[0]',
    "",
)
TAILS = (
    "",
    ',"create":true',
    ',"create":1',
    ',"custom_meta":[{"n":1}]',
    ',"custom_meta":[{"n":null}],"custom_meta_mode":"update"',
    ',"custom_meta_mode":"both"',
    ',"stray":1',
    ',"keys":["k"]',
)


def body(names: list[str], shapes: list[str], numbers: list[str], cells: str, rows: str, tail: str) -> bytes:
    """Fields of these names; each has a schema with one of the numbers in it."""
    fields = [
        f'"{name}":{{"dtype":"int64",{shape % number if "%" in shape else shape}}}'
        for name, shape, number in zip(names, shapes, itertools.cycle(numbers), strict=False)
    ]
    parts = [f'"field_schema":{{{",".join(fields)}}}', f'"backend_meta":{cells}', *filter(None, [rows])]
    return f"{{{','.join(parts)}{tail}}}".encode()


def told(reader: Pieces[Produce], engine: Engine, text: bytes) -> object:
    """What a write of this body says, or why it is refused."""
    try:
        said = reader.at_once(text)
        schemas: Any = said.field_schema
        rows = len(said.keys or said.global_indexes or ())
        write = fields_of(engine, schemas, columns(said.backend_meta), rows)
    except (msgspec.DecodeError, Refused) as error:
        return type(error), str(error)
    rest = [getattr(said, name) for name in said.__struct_fields__ if name not in ("field_schema", "backend_meta")]
    return write.signature, write.sizes.tolist(), write.backend, msgspec.json.encode(rest)


def engine() -> Engine:
    return Engine(time.monotonic, time.time)


some = {
    "names": st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True),
    "shapes": st.lists(st.sampled_from(SHAPES), min_size=3, max_size=3),
    "cells": st.sampled_from(CELLS),
    "rows": st.sampled_from(ROWS),
    "tail": st.sampled_from(TAILS),
}
pairs = st.lists(st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=3), min_size=2, max_size=6)


@settings(max_examples=400, deadline=None)
@given(**some, numbers=pairs)
def test_a_body_is_read_as_by_the_plain_decoder_whatever_came_before(
    names: list[str], shapes: list[str], cells: str, rows: str, tail: str, numbers: list[list[str]]
) -> None:
    reader, ours, theirs = ProduceReader(Produce), engine(), engine()
    for each in numbers:
        text = body(names, shapes, each, cells, rows, tail)
        assert told(reader, ours, text) == told(PLAIN, theirs, text), text


@pytest.mark.parametrize("shape", SHAPES)
def test_every_way_to_write_a_number_is_read_after_every_other(shape: str) -> None:
    for first, second in itertools.product(NUMBERS, NUMBERS):
        reader, ours, theirs = ProduceReader(Produce), engine(), engine()
        for number in (first, second):
            text = body(["a"], [shape], [number], "{}", '"keys":["k"]', "")
            assert told(reader, ours, text) == told(PLAIN, theirs, text), text


@pytest.mark.parametrize("tail", TAILS)
def test_every_other_member_is_read_where_the_form_came_before(tail: str) -> None:
    reader, ours, theirs = ProduceReader(Produce), engine(), engine()
    for number in ("5", "6"):
        text = body(["a"], ['"lengths":[%s]'], [number], "{}", '"keys":["k"]', tail)
        assert told(reader, ours, text) == told(PLAIN, theirs, text)


@settings(max_examples=200, deadline=None)
@given(first=st.sampled_from(NAMES), second=st.sampled_from(NAMES), numbers=pairs)
def test_names_that_differ_in_digits_alone_are_other_names(first: str, second: str, numbers: list[list[str]]) -> None:
    reader, ours, theirs = ProduceReader(Produce), engine(), engine()
    for name, each in itertools.product((first, second, first), numbers):
        for dtype in ("int64", "int32"):
            text = body([name], ['"shape":[%s]'], each, "{}", '"keys":["k"]', "").replace(b"int64", dtype.encode())
            assert told(reader, ours, text) == told(PLAIN, theirs, text), text


def row(length: int, cell: int = 1, keys: int = 1) -> bytes:
    """A body as workers send it."""
    schema = {"input_ids": {"dtype": "int64", "lengths": [length] * keys}, "uid": {"kind": "object"}}
    cells = {"input_ids": {"const": str(cell)}}
    return json.dumps(
        {"keys": [str(key) for key in range(keys)], "field_schema": schema, "backend_meta": cells}
    ).encode()


@pytest.mark.parametrize(
    ("text", "is_short"),
    [(row(812), True), (row(999), True), (row(81), False), (row(812, 2), False), (row(812, keys=2), False)],
    ids=["same", "other-size", "other-digits", "other-cells", "two-rows"],
)
def test_a_form_that_came_before_is_not_decoded_again(text: bytes, is_short: bool) -> None:
    reader = ProduceReader(Produce)
    assert not isinstance(reader.at_once(row(500)).field_schema, OneRow)
    assert isinstance(reader.at_once(text).field_schema, OneRow) is is_short
