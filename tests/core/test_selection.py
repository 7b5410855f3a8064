"""Which rows a read means, and its pages: a row that is there throughout is listed exactly once, whatever else happens.

A cursor is taken by the listing that gave it and by no other.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import core.operations.read
from core.engine import Engine
from core.errors import FieldNotFound, Invalid, KeyNotFound, SampleNotFound
from core.operations.consumption import read_consumption
from core.operations.delete import delete
from core.operations.partitions import delete_partition, list_partitions
from core.operations.read import list_keys, lookup_keys, read, read_backend_meta, read_production
from core.reading.batch import View
from core.reading.selectors import Selector
from tests.core.world import add, add_keys, new_engine, write

P = "p"
Page = tuple[list[Any], str | None]
Lister = Callable[[Engine, int, str | None], Page]


def whole(engine: Engine, limit: int, cursor: str | None) -> Page:
    batch = read(engine, P, Selector(), View(), False, limit, cursor)
    return batch.global_indexes.tolist(), batch.next_cursor


def backend(engine: Engine, limit: int, cursor: str | None) -> Page:
    found = read_backend_meta(engine, P, Selector(), View(), limit, cursor)
    return found.global_indexes.tolist(), found.next_cursor


def production(engine: Engine, limit: int, cursor: str | None) -> Page:
    found = read_production(engine, P, (), limit, cursor)
    return found.global_indexes.tolist(), found.next_cursor


def consumption(engine: Engine, limit: int, cursor: str | None) -> Page:
    page = read_consumption(engine, P, "t", False, limit, cursor).page
    assert page is not None
    return page.indexes.tolist(), page.next_cursor


def keyed(engine: Engine, limit: int, cursor: str | None) -> Page:
    _, lines, following = list_keys(engine, P, "", limit, cursor)
    return [line.global_index for line in lines], following


def with_prefix(engine: Engine, limit: int, cursor: str | None) -> Page:
    _, lines, following = list_keys(engine, P, "k", limit, cursor)
    return [line.global_index for line in lines], following


def selected(engine: Engine, limit: int, cursor: str | None) -> Page:
    batch = read(engine, P, Selector(key_prefix="k"), View(), False, limit, cursor)
    return batch.global_indexes.tolist(), batch.next_cursor


LISTERS: list[Lister] = [whole, backend, production, consumption, keyed, with_prefix, selected]


def pages(lister: Lister, engine: Engine, limit: int) -> Iterator[list[Any]]:
    cursor: str | None = None
    for _ in range(100):
        items, cursor = lister(engine, limit, cursor)
        yield items
        if cursor is None:
            return
    raise AssertionError("the listing does not end")


@pytest.mark.parametrize("lister", LISTERS)
@pytest.mark.parametrize("rows", [0, 1, 4, 5, 8])
def test_pages_are_full_and_end_without_a_cursor(lister: Lister, rows: int) -> None:
    engine = new_engine()
    add_keys(engine, P, [f"k{i}" for i in range(rows)])
    sizes = [len(items) for items in pages(lister, engine, 4)]
    assert sizes == [4] * ((rows - 1) // 4) + [rows - 4 * max(0, (rows - 1) // 4)]


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    lister=st.sampled_from(LISTERS),
    rows=st.integers(1, 15),
    limit=st.integers(1, 5),
    between=st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 25), max_size=4)), max_size=6),
)
def test_a_row_that_is_there_throughout_is_listed_exactly_once(
    lister: Lister, rows: int, limit: int, between: list[tuple[int, list[int]]]
) -> None:
    engine = new_engine()
    stays = set(add_keys(engine, P, [f"k{i}" for i in range(rows)]))
    changes = iter(between)
    listed: list[int] = []
    for number, items in enumerate(pages(lister, engine, limit)):
        listed += items
        new, gone = next(changes, (0, []))
        delete(engine, P, Selector(indexes=gone))
        stays.difference_update(gone)
        add_keys(engine, P, [f"k-{number}-{i}" for i in range(new)])
    assert listed == sorted(set(listed))
    assert stays <= set(listed)


def test_a_cursor_outlives_the_row_it_points_at_and_the_closing_of_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.state.partition.GAPS", 0)
    engine = new_engine()
    add(engine, P, 20)
    items, cursor = whole(engine, 4, None)
    delete(engine, P, Selector(indexes=list(range(1, 18))))
    assert (items, whole(engine, 4, cursor)) == ([0, 1, 2, 3], ([18, 19], None))


def test_rows_named_by_the_caller_keep_their_order_and_repetitions_over_pages() -> None:
    engine = new_engine()
    add(engine, P, 4)
    asked = [3, 1, 3, 99, 0, 2**63 - 1, 0]
    found: list[int] = []
    cursor: str | None = None
    for size in (3, 3, 1):
        batch = read(engine, P, Selector(indexes=asked), View(), False, 3, cursor)
        assert len(batch.global_indexes) == size
        found += batch.global_indexes.tolist()
        cursor = batch.next_cursor
    assert (found, cursor) == (asked, None)


def test_keys_that_are_not_there_are_named_on_their_page_and_left_out() -> None:
    engine = new_engine()
    a, b = add_keys(engine, P, ["a", "b"])
    selector = Selector(keys=["b", "no", "a", "nor", "b"])
    first = read(engine, P, selector, View(), False, 2, None)
    assert (first.global_indexes.tolist(), first.missing_keys) == ([b], ("no",))
    second = read(engine, P, selector, View(), False, 2, first.next_cursor)
    assert (second.global_indexes.tolist(), second.missing_keys) == ([a], ("nor",))
    third = read(engine, P, selector, View(), False, 2, second.next_cursor)
    assert (third.global_indexes.tolist(), third.next_cursor) == ([b], None)


def test_keys_and_indexes_exclude_each_other_and_an_empty_list_selects_nothing() -> None:
    for two in ({"indexes": [1], "keys": ["a"]}, {"keys": [], "group_ids": []}, {"indexes": [], "key_prefix": "a"}):
        with pytest.raises(Invalid, match="one of global_indexes, keys, group_ids and key_prefix"):
            Selector(**two)
    engine = new_engine()
    add(engine, P, 3)
    for nothing in (Selector(indexes=[]), Selector(keys=[]), Selector(group_ids=[]), Selector(key_prefix="k")):
        batch = read(engine, P, nothing, View(), True, 10, None)
        assert (batch.global_indexes.tolist(), batch.status.tolist(), batch.next_cursor) == ([], [], None)


def test_groups_and_prefixes_select_rows_in_index_order() -> None:
    engine = new_engine()
    add_keys(engine, P, ["b1", "a1", "a2", "b2", 'a"', "\u00e9"], group_ids=[7, "7", "g", 7, None, "g"])
    delete(engine, P, Selector([2]))
    add(engine, P, 1, group_ids=["g"])

    def rows(**selector: Any) -> list[int]:
        return read(engine, P, Selector(**selector), View(), True, 10, None).global_indexes.tolist()

    assert rows(group_ids=["g", 7, "nobody", "g"]) == [0, 3, 5, 6]
    assert rows(group_ids=["7"]) == [1]
    assert (rows(key_prefix="a"), rows(key_prefix='a"'), rows(key_prefix="\u00e9")) == ([1, 4], [4], [5])
    first = read_backend_meta(engine, P, Selector(group_ids=[7, "g"]), View(), 3, None)
    rest = read_backend_meta(engine, P, Selector(group_ids=[7, "g"]), View(), 3, first.next_cursor)
    assert (first.global_indexes.tolist(), rest.global_indexes.tolist()) == ([0, 3, 5], [6])
    assert delete(engine, P, Selector(group_ids=["7", 7]))[0] == 3


def test_strict_refuses_whatever_is_missing_and_names_it() -> None:
    engine = new_engine()
    add_keys(engine, P, ["a"])
    write(engine, P, [0], ["f"])
    with pytest.raises(KeyNotFound) as keys:
        read(engine, P, Selector(keys=["a", "b"]), View(), True, 10, None)
    assert list(keys.value.keys) == ["b"]
    with pytest.raises(SampleNotFound) as indexes:
        read(engine, P, Selector(indexes=[0, 5]), View(), True, 10, None)
    assert list(indexes.value.global_indexes) == [5]
    with pytest.raises(FieldNotFound) as fields:
        read(engine, P, Selector(), View(("f", "g")), True, 10, None)
    assert list(fields.value.fields) == ["g"]
    assert read(engine, P, Selector(keys=["a"]), View(("f",)), True, 10, None).status.tolist() == [1]


BAD_CURSORS = [
    "",
    "i",
    "i-1",
    "x0",
    "i0 ",
    "iG",
    "I0",
    "i8000000000000000",
    "i" + "f" * 17,
    "0",
    "i0x1",
    "i\u0661",
    "\n",
    "\xe9",
]


@pytest.mark.parametrize("lister", LISTERS)
@pytest.mark.parametrize("cursor", [*BAD_CURSORS, "p1", "m1"])
def test_a_cursor_that_this_listing_did_not_give_is_refused(lister: Lister, cursor: str) -> None:
    engine = new_engine()
    add_keys(engine, P, ["k0", "k1"])
    with pytest.raises(Invalid, match="cursor"):
        lister(engine, 1, cursor)


def test_the_cursor_of_one_listing_is_refused_by_another() -> None:
    engine = new_engine()
    add(engine, P, 3)
    add(engine, "q", 3)
    _, of_rows = whole(engine, 1, None)
    of_named = read(engine, P, Selector(indexes=[0, 1]), View(), False, 1, None).next_cursor
    _, of_partitions = list_partitions(engine, "", 1, None)
    for cursor in (of_named, of_partitions):
        with pytest.raises(Invalid, match="cursor"):
            whole(engine, 1, cursor)
    for cursor in (of_rows, of_partitions):
        with pytest.raises(Invalid, match="cursor"):
            read(engine, P, Selector(indexes=[0, 1]), View(), False, 1, cursor)
    with pytest.raises(Invalid, match="cursor"):
        list_partitions(engine, "", 1, of_rows)


def test_partitions_are_listed_in_the_order_they_were_made() -> None:
    engine = new_engine()
    for name in ("z", "a", "other", "m"):
        add(engine, name)
    lines, cursor = list_partitions(engine, "", 2, None)
    assert [line.partition_id for line in lines] == ["z", "a"]
    lines, rest = list_partitions(engine, "", 2, cursor)
    assert ([line.partition_id for line in lines], rest) == (["other", "m"], None)
    for name in ("z", "a"):
        delete_partition(engine, name, None)
    add(engine, "z")
    lines, cursor = list_partitions(engine, "", 9, cursor)
    assert ([line.partition_id for line in lines], cursor) == (["other", "m", "z"], None)
    assert [line.partition_id for line in list_partitions(engine, "m", 9, None)[0]] == ["m"]


@settings(derandomize=True, deadline=None)
@given(st.sets(st.text('aé"\\😀\u2028', min_size=1, max_size=3), max_size=12), st.text('aé"\\😀\u2028', max_size=2))
def test_a_prefix_of_keys_is_a_prefix_of_their_text(keys: set[str], prefix: str) -> None:
    engine = new_engine()
    add(engine, P)
    add_keys(engine, P, sorted(keys))
    _, lines, cursor = list_keys(engine, P, prefix, 100, None)
    assert ([json.loads(line.key) for line in lines], cursor) == (
        [k for k in sorted(keys) if k.startswith(prefix)],
        None,
    )


def test_few_keys_among_many_rows_are_found_in_one_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core.operations.read, "KEY_CHUNK", 7)
    engine = new_engine()
    add(engine, P, 50)
    add_keys(engine, P, ["a1", "b1"])
    add(engine, P, 50)
    add_keys(engine, P, ["a2"])
    for prefix, names in [("a", ["a1", "a2"]), ("", ["a1", "b1", "a2"]), ("c", [])]:
        _, lines, cursor = list_keys(engine, P, prefix, 3, None)
        assert ([json.loads(line.key) for line in lines], cursor) == (names, None)
    _, lines, cursor = list_keys(engine, P, "a", 1, None)
    assert json.loads(list_keys(engine, P, "a", 1, cursor)[1][0].key) == "a2"
    assert lookup_keys(engine, P, [50, 0, 999, 102])[1] == [b'"a1"', b"null", b"null", b'"a2"']
