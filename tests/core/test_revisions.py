"""A revision is that of the last change: of the service, a partition, a row. What stays as it was keeps its own."""

import json

from core.engine import Engine
from core.operations.delete import delete
from core.operations.partitions import put_partition
from core.operations.produce import RowWrite, insert, patch_backend_meta, patch_custom_meta, produce
from core.operations.read import list_keys, read_backend_meta
from core.reading.batch import View
from core.reading.selectors import Selector
from core.state.cells.json_cells import Const
from tests.core.world import MANY, TENSOR, Schema, add, add_keys, new_engine, write

P = "p"


def row_revisions(engine: Engine) -> list[int]:
    _, lines, _ = list_keys(engine, P, "", MANY, None)
    return [line.revision for line in lines]


def three() -> Engine:
    """Rows a, b, c with the field f; each row's last change is revision 2."""
    engine = new_engine()
    write(engine, P, add_keys(engine, P, ["a", "b", "c"]), ["f"])
    assert row_revisions(engine) == [2, 2, 2]
    return engine


def test_a_patch_of_custom_meta_touches_the_rows_that_it_changes() -> None:
    engine = three()
    patch_custom_meta(engine, P, RowWrite([0, 1, 2], custom_meta=[b'{"v":1}', b"{}", b"null"]))
    assert row_revisions(engine) == [3, 2, 2]
    patch_custom_meta(engine, P, RowWrite([0, 1], custom_meta=Const(b'{"v":1}')))
    assert row_revisions(engine) == [3, 4, 2]


def test_a_patch_of_backend_meta_touches_the_rows_that_it_changes() -> None:
    engine = three()
    patch_backend_meta(engine, P, RowWrite([0, 1, 2]), {"f": [b"null", b"1", b"null"]})
    assert row_revisions(engine) == [2, 3, 2]
    patch_backend_meta(engine, P, RowWrite([0, 1, 2]), {"f": Const(b"1")})
    assert row_revisions(engine) == [4, 3, 4]


def test_a_write_touches_the_rows_that_it_changes() -> None:
    engine = three()
    write(engine, P, [0, 1, 2], {"f": TENSOR}, {"f": [b"1", b"null", b"null"]})
    assert row_revisions(engine) == [3, 2, 2]
    produce(engine, P, RowWrite(keys=["b", "new"]), True, {"f": TENSOR}, {})
    assert row_revisions(engine) == [3, 2, 2, 4]
    insert(engine, P, None, RowWrite(keys=["c", "newer"], group_ids=["g", None]), View())
    assert row_revisions(engine) == [3, 2, 5, 4, 5]


def test_what_leaves_all_as_it_was_is_no_change() -> None:
    engine = three()
    put_partition(engine, P, None, None, None, {})
    write(engine, P, [2, 0], ["f"])
    write(engine, P, [0, 1], {})
    insert(engine, P, None, RowWrite(keys=["a", "b"], custom_meta=Const(b"{}")), View())
    patch_custom_meta(engine, P, RowWrite([0], custom_meta=[b'{"gone":null}']))
    patch_backend_meta(engine, P, RowWrite([0]), {"f": [b"null"]})
    delete(engine, P, Selector(indexes=[77]))
    assert (engine.revision, len(engine.log)) == (2, 2)


def test_a_change_of_one_partition_leaves_the_revision_of_another() -> None:
    engine = three()
    add(engine, "other")
    assert (engine.revision, engine.revision_of(P), engine.revision_of("other")) == (3, 2, 3)


def cells(engine: Engine, indexes: list[int]) -> dict[str, list[object]]:
    found = read_backend_meta(engine, P, Selector(indexes=indexes), View(expand=True), MANY, None)
    return json.loads(b"".join(found.columns))  # type: ignore[no-any-return]


def test_a_row_that_loses_a_cell_because_its_field_is_forgotten_has_changed() -> None:
    engine = three()
    write(engine, P, [0], {"g": TENSOR})
    patch_backend_meta(engine, P, RowWrite([1, 2]), {"g": [b"1", b"2"]})
    patch_backend_meta(engine, P, RowWrite([2]), {"g": [b"null"]})
    assert row_revisions(engine) == [3, 4, 5]
    delete(engine, P, Selector(indexes=[0]))
    assert cells(engine, [1]).keys() == {"f"}
    assert row_revisions(engine) == [6, 5]


def test_a_declared_field_keeps_the_cells_of_rows_that_never_had_it() -> None:
    engine = new_engine()
    put_partition(engine, P, None, None, None, {"g": Schema("int64")})
    add_keys(engine, P, ["a", "b"])
    write(engine, P, [0], {"g": TENSOR}, {"g": Const(b'"where"')})
    patch_backend_meta(engine, P, RowWrite([1]), {"g": [b"1"]})
    delete(engine, P, Selector(indexes=[0]))
    assert cells(engine, [0, 1]) == {"g": [None, 1]}
    write(engine, P, add(engine, P), {"g": Schema("int64", [2, 2])})
    assert cells(engine, [1, 2]) == {"g": [1, None]}


def test_the_constant_of_a_declared_field_goes_with_the_last_row_that_had_it() -> None:
    engine = new_engine()
    put_partition(engine, P, None, None, None, {"g": Schema("int64")})
    write(engine, P, add(engine, P), {"g": TENSOR}, {"g": Const(b'"where"')})
    delete(engine, P, Selector(indexes=[0]))
    write(engine, P, add(engine, P), {"g": TENSOR})
    assert cells(engine, [1]) == {"g": [None]}
