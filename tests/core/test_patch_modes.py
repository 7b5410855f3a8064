"""The two modes of patches of custom meta: *update* is `dict.update`, and either may follow the other.

Cells, then writes of every kind held against dicts, in a run of puts and over a restart too.
"""

import json
from collections.abc import Sequence
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import Invalid
from core.operations.produce import RowWrite, insert, patch_custom_meta, produce
from core.reading.batch import View
from core.snapshot.image import image
from core.state.cells.json_cells import Const, patched
from core.writing.forms import Form, OneRow
from tests.core.world import Book, Schema, add, look, new_engine
from tests.model.plain import patched as as_meant

P, MOST = "p", 10_000
Mode = Literal["merge", "update"]
Patch = dict[str, Any] | None
NAMES = ("a", "b", "é", "日本", "😀", "", 'q"\\', "\u2028")
names = st.sampled_from(NAMES)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "é😀"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(names, values, max_size=3)
modes: st.SearchStrategy[Mode] = st.sampled_from(("merge", "update"))
patches = st.lists(st.tuples(modes, st.none() | documents), max_size=6)


def as_json(value: Any, *, is_ascii: bool = False) -> bytes:
    return json.dumps(value, ensure_ascii=is_ascii).encode()


@settings(derandomize=True, deadline=None)
@given(patches, st.booleans())
def test_patches_of_both_modes_are_what_they_are_of_dicts(given: list[tuple[Mode, Patch]], is_ascii: bool) -> None:
    cell, meant = b"{}", dict[str, Any]()
    for mode, patch in given:
        text = as_json(patch, is_ascii=is_ascii)
        cell, meant = patched(cell, text, "x", MOST, mode), as_meant(meant, patch, mode)
        assert as_json(json.loads(cell)) == as_json(meant)
        if mode == "update":
            assert patched(cell, text, "x", MOST, mode) is cell, "said again, it is no change"


def test_an_update_replaces_members_whole_and_keeps_null() -> None:
    stored = b'{"a":{"x":1,"y":2},"b":1}'
    assert patched(stored, b'{"a":{"x":null},"b":null}', "m", MOST, "update") == b'{"a":{"x":null},"b":null}'
    assert patched(stored, b'{"a":{"x":null},"b":null}', "m", MOST) == b'{"a":{"y":2}}'
    assert patched(b"{}", b'{"b":null}', "m", MOST, "update") == b'{"b":null}'
    assert patched(b'{"b":null}', b'{"b":null}', "m", MOST) == b"{}"


@pytest.mark.parametrize("patch", [b"null", b"{}", b"{ }", b'{"a":1}', b'{"a" : 1}', b'{"b":{"c":null}}'])
def test_an_update_that_changes_nothing_gives_the_very_cell_back(patch: bytes) -> None:
    stored = b'{"a":1,"b":{"c":null}}'
    assert patched(stored, patch, "x", MOST, "update") is stored


def test_an_update_may_not_grow_beyond_the_limit() -> None:
    stored, patch = b'{"a":"' + b"x" * 200 + b'"}', b'{"b":"' + b"y" * 200 + b'"}'
    with pytest.raises(Invalid, match="after the update: at most 300"):
        patched(stored, patch, "x", 300, "update")


FORM = Form({"x": Schema("int64", lengths=[1])}, {})
VERBS = ("insert", "produce", "patch", "put")
keys = st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True)
calls = st.tuples(st.sampled_from(VERBS), keys, st.lists(documents | st.none(), min_size=3, max_size=3), modes)


class World:
    """An engine, its journal, and the custom meta that each key is to have."""

    def __init__(self) -> None:
        self.engine, self.book = new_engine(), Book()
        self.meant: dict[str, dict[str, Any]] = {}

    def write(self, verb: str, keys: Sequence[str], patches: Sequence[Patch], mode: Mode) -> None:
        """A patch is for those that are there; a put is of one row, in one form."""
        keys = [key for key in keys if verb != "patch" or key in self.meant][: 1 if verb == "put" else None]
        if not keys:
            return
        column: Any = [as_json(patch) for patch in patches[: len(keys)]]
        if len(set(column)) == 1 and len(column) > 1:
            column = Const(column[0])
        before, changes = self.engine.revision, self.meant.copy()
        self._write(verb, RowWrite(keys=keys, custom_meta=column, custom_meta_mode=mode))
        for key, patch in zip(keys, patches, strict=False):
            changes[key] = as_meant(changes.get(key, {}), patch, mode)
        is_same = as_json(changes) == as_json(self.meant)
        assert is_same <= (self.engine.revision == before or verb in ("produce", "put"))
        self.meant = changes

    def _write(self, verb: str, write: RowWrite) -> None:
        if verb == "insert":
            insert(self.engine, P, None, write, View())
        elif verb == "produce":
            produce(self.engine, P, write, True, {"x": Schema("int64", lengths=[1] * len(write.keys or ()))}, {})
        elif verb == "put":
            produce(self.engine, P, write, True, OneRow(FORM, [1]), {})
        else:
            patch_custom_meta(self.engine, P, write)

    def check(self) -> None:
        names = list(self.meant)
        found = insert(
            self.engine, P, None, RowWrite(keys=names), View(include=frozenset({"custom_meta"}), expand=True)
        )
        assert isinstance(found, tuple)
        assert as_json(json.loads(found[0].custom_meta or b"")) == as_json(list(self.meant.values()))
        self.book.take(self.engine)
        again = self.book.replayed()
        assert image(again) == image(self.engine)
        assert look(again, P).custom_meta == look(self.engine, P).custom_meta


@settings(derandomize=True, deadline=None)
@given(st.lists(calls, min_size=1, max_size=8))
def test_every_write_patches_as_dicts_are_and_a_restart_gives_the_same(given: list[Any]) -> None:
    world = World()
    for verb, names, given_patches, mode in given:
        world.write(verb, names, given_patches, mode)
    if world.meant:
        world.check()


def test_puts_of_both_modes_follow_each_other_in_one_run() -> None:
    engine = new_engine()
    add(engine, P, 1)
    column = [b'{"n":null,"m":1}']
    for key, mode in (("a", "update"), ("b", "merge"), ("c", "update"), ("d", "update")):
        write = RowWrite(keys=[key], custom_meta=column, custom_meta_mode=mode)  # type: ignore[arg-type]
        produce(engine, P, write, True, OneRow(FORM, [1]), {})
    assert len(engine.pending) == 3, "all but the first are put off"
    assert json.loads(look(engine, P).custom_meta or b"") == [
        {},
        {"n": None, "m": 1},
        {"m": 1},
        {"n": None, "m": 1},
        {"n": None, "m": 1},
    ]
