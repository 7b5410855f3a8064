"""JSON cells: what is accepted once can be read by every reader for ever; what is merged follows RFC 7396."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import Invalid
from core.state.cells.json_cells import CellChecker, Const, json_values, patched

MOST = 300

# RFC 7396, appendix A, where the target is an object: (original, patch, result).
RFC_EXAMPLES = [
    ('{"a":"b"}', '{"a":"c"}', '{"a":"c"}'),
    ('{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'),
    ('{"a":"b"}', '{"a":null}', "{}"),
    ('{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'),
    ('{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'),
    ('{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'),
    ('{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'),
    ('{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'),
    ('{"e":null}', '{"a":1}', '{"e":null,"a":1}'),
    ("{}", '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'),
]


def checker() -> CellChecker:
    return CellChecker(MOST)


def check(raw: bytes, wrappers: int = 2, *, patch: bool = False) -> bytes:
    return checker().cell(raw, "body.cell", wrappers, patch)


def nested(depth: int, leaf: bytes = b"") -> bytes:
    return b"[" * depth + leaf + b"]" * depth


@pytest.mark.parametrize(("original", "patch", "result"), RFC_EXAMPLES)
def test_the_rfcs_own_examples(original: str, patch: str, result: str) -> None:
    assert patched(original.encode(), patch.encode(), "x", MOST) == result.encode()


def test_null_in_a_column_of_patches_leaves_the_row_alone() -> None:
    stored = b'{"a":1}'
    assert patched(stored, b"null", "x", MOST) is stored


@pytest.mark.parametrize("patch", [b"{}", b"{ }", b'{"a":1}', b'{"gone":null}', b'{"b":{"gone":null}}'])
def test_a_patch_that_changes_nothing_gives_the_very_cell_back(patch: bytes) -> None:
    stored = b'{"a":1,"b":{}}'
    assert patched(stored, patch, "x", MOST) is stored
    assert patched(b"{}", b"{ }", "x", MOST) == b"{}"


objects = st.recursive(
    st.none() | st.integers(-3, 3) | st.sampled_from(["", "x", "é"]) | st.just([None, {"a": None}]),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(st.sampled_from("abc"), objects, max_size=3)


def as_the_rfc_says(target: Any, patch: Any) -> Any:
    """The pseudocode of RFC 7396, section 2."""
    if not isinstance(patch, dict):
        return patch
    if not isinstance(target, dict):
        target = {}
    out = dict(target)
    for name, value in patch.items():
        if value is None:
            out.pop(name, None)
        else:
            out[name] = as_the_rfc_says(out.get(name), value)
    return out


@settings(derandomize=True, deadline=None)
@given(documents, documents)
def test_merging_is_the_rfcs_pseudocode(stored: dict[str, Any], patch: dict[str, Any]) -> None:
    before, change = json.dumps(stored).encode(), json.dumps(patch).encode()
    after = patched(before, change, "x", 10_000)
    assert json.loads(after) == as_the_rfc_says(stored, patch)
    assert json.loads(patched(after, change, "x", 10_000)) == json.loads(after)


def test_a_merge_may_not_grow_beyond_the_limit() -> None:
    stored, patch = b'{"a":"' + b"x" * 200 + b'"}', b'{"b":"' + b"y" * 200 + b'"}'
    with pytest.raises(Invalid, match="after the merge: at most 300"):
        patched(stored, patch, "x", MOST)


def test_a_cell_may_have_the_limit_and_not_a_byte_more() -> None:
    assert len(check(b'"' + b"x" * (MOST - 2) + b'"')) == MOST
    with pytest.raises(Invalid, match="is 301 bytes: at most 300"):
        check(b'"' + b"x" * (MOST - 1) + b'"')


@pytest.mark.parametrize("wrappers", [2, 3])
def test_a_request_may_be_64_deep_with_what_is_around_the_cell(wrappers: int) -> None:
    room = 64 - wrappers
    assert check(nested(room), wrappers) == nested(room)
    for deep in (nested(room + 1), nested(room + 1, b"1")):
        with pytest.raises(Invalid, match="nested too deep: at most 64"):
            check(deep, wrappers)
    assert check(b'"' + b"[" * 100 + b'"', wrappers)
    assert check(b"[" + b",".join([b"[]"] * 70) + b"]", wrappers)


@pytest.mark.parametrize("deep", [nested(900), b'{"a":' * 900 + b"1" + b"}" * 900, nested(100_000), b"[" * 100_000])
def test_far_too_deep_is_refused_like_any_other(deep: bytes) -> None:
    with pytest.raises(Invalid):
        CellChecker(10**6).cell(deep, "x", 2, False)


@pytest.mark.parametrize("number", ["9223372036854775807", "-9223372036854775808", "18446744073709551615", "1.5e308"])
def test_numbers_of_64_bits_and_doubles_are_kept_as_they_came(number: str) -> None:
    assert check(number.encode()) == number.encode()
    inside = b'{"a":[' + number.encode() + b"]}"
    assert json.loads(patched(inside, b'{"b":1}', "x", MOST))["a"] == json.loads(b"[" + number.encode() + b"]")


BAD_NUMBERS = [
    "18446744073709551616",
    "-9223372036854775809",
    "1" * 40,
    "1" * 299,
    "1e999",
    "-1e999",
    "NaN",
    "Infinity",
]


@pytest.mark.parametrize("number", [*BAD_NUMBERS, "01", "1.", ".5", "+1", "0x1"])
def test_numbers_beyond_that_are_refused_wherever_they_stand(number: str) -> None:
    for cell in (number, f"[{number}]", f'{{"a":{{"b":[1,{number}]}}}}'):
        with pytest.raises(Invalid):
            check(cell.encode())


BAD_TEXT = [b'"\xff"', b'"\xc3"', b'"\xed\xa0\x80"', b'{"\xff":1}', b'"\\ud800"', b'"\\udc00"', b'"\\ud800 and more"',
            b'"\\udc00\\ud800"', b'{"\\ud800":1}', b'"\x00"', b'"\n"', b'"', b"", b" ", b"{", b"[1,]", b'{"a"}', b"1 2",
            b"nul", b"'a'", b'{"a":1}{"b":1}']  # fmt: skip


@pytest.mark.parametrize("cell", BAD_TEXT)
def test_what_a_reader_could_not_decode_is_refused(cell: bytes) -> None:
    with pytest.raises(Invalid, match="not JSON that every reader can decode"):
        check(cell)


@pytest.mark.parametrize("cell", [b'"\\ud83d\\ude00"', '"😀 é"'.encode(), b'"\\u0000"', b"{}", b"null", b"-0", b'""'])
def test_what_every_reader_can_decode_is_kept_byte_for_byte(cell: bytes) -> None:
    assert check(cell) == cell
    json.loads(cell)


@pytest.mark.parametrize("cell", [b"1", b'"x"', b"[]", b"true", b"[{}]"])
def test_a_patch_is_an_object_or_null(cell: bytes) -> None:
    subject = checker()
    assert subject.cell(cell, "x", 2, False) == cell
    with pytest.raises(Invalid, match="must be an object"):
        subject.cell(cell, "x", 2, True)
    assert subject.cell(b"null", "x", 2, True) == b"null"


def test_equal_small_cells_share_their_bytes_and_bad_ones_are_refused_each_time() -> None:
    subject = checker()
    first = subject.cell(bytes(bytearray(b'{"a":1}')), "x", 2, True)
    assert subject.cell(bytes(bytearray(b'{"a":1}')), "y", 3, False) is first
    for _ in range(3):
        with pytest.raises(Invalid):
            subject.cell(b"1e999", "x", 2, False)


def test_the_memory_of_cells_does_not_hide_that_one_is_too_deep_for_its_place() -> None:
    subject = checker()
    assert subject.cell(nested(62), "x", 2, False)
    with pytest.raises(Invalid, match="too deep"):
        subject.cell(nested(62), "x", 3, False)


def test_the_memory_of_cells_is_bounded() -> None:
    subject = checker()
    for number in range(10_000):
        subject.cell(b"%d" % number, "x", 2, False)
    assert len(subject._memo) <= 4096
    subject.cell(b'"' + b"x" * 280 + b'"', "x", 2, False)
    assert max(map(len, subject._memo)) <= 256


def test_a_column_has_one_value_per_row_or_a_constant() -> None:
    subject = checker()
    assert subject.column([b"1", b"2"], 2, "body.m", 2) == [b"1", b"2"]
    assert subject.column(Const(b"1"), 7, "body.m", 2) == b"1"
    assert subject.column([b"1", b"1"], 2, "body.m", 2) == b"1"
    with pytest.raises(Invalid, match="has 2 values for 3 rows"):
        subject.column([b"1", b"2"], 3, "body.m", 2)
    with pytest.raises(Invalid) as refused:
        subject.column([b"1", b"1e999"], 2, "body.m", 2)
    assert refused.value.errors[0][0] == "body.m[1]"
    with pytest.raises(Invalid) as refused:
        subject.column(Const(b"1e999"), 2, "body.m", 2)
    assert refused.value.errors[0][0] == "body.m.const"


def test_a_column_of_raw_views_is_copied_out_of_its_body() -> None:
    body = msgspec.json.decode(b'[{"a":1},{"a":1},{"a":2}]', type=list[msgspec.Raw])
    cells = checker().column(body, 3, "body.m", 2)  # type: ignore[arg-type]
    assert isinstance(cells, list)
    assert [type(cell) for cell in cells] == [bytes, bytes, bytes]
    assert cells[0] is cells[1]


@settings(derandomize=True, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_strings_become_their_json_bytes(texts: list[str]) -> None:
    assert [json.loads(cell) for cell in json_values(texts)] == texts
    assert json_values(texts) == json_values(list(texts))
