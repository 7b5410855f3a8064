"""The values that the state machine draws: names, columns, every form of a field schema with its meaning per row."""

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from core.operations.produce import RowWrite
from core.reading.batch import View
from core.state.cells.json_cells import Column, Const
from tests.core.world import ALL_PARTS, Same
from tests.core.world import Schema as SchemaIn
from tests.model.by_rank import ByRank, RankAware, SeqlenBalanced
from tests.model.model import Write
from tests.model.plain import Schema, Settings
from tests.model.samplers import Groups, Lifo, Picker, Priority, Random, TokenBudget

PARTITIONS = ("a", "b", "c")
TASKS = ("train", "score", "log")
KEYS = tuple(f"k{i}" for i in range(8))
GROUPS = (None, "g", "h", 7, "7")
DTYPES = {"ids": "int64", "mask": "int64", "image": "float32", "text": None, "any": "int64"}
FIELDS = tuple(DTYPES)
CELLS = (None, {"at": 1}, {"at": 2}, "somewhere")
BIG = 2**53  # beyond it a float64 confuses integers
PATCHES = (
    None,
    {},
    {"a": 1},
    {"a": None},
    {"b": {"c": 2}},
    {"b": {"c": None, "d": [None]}},
    {"b": {"é": {"c": None}}},
    {"b": "x"},
    {"w": 1},
    {"w": 2.5},
    {"w": 1},
    {"w": "x"},
    {"w": BIG},
    {"w": BIG + 1},
)
WEIGHTS = ({"w": 1}, {"w": 3}, {"w": 2.5}, {"w": 1}, {"w": BIG}, {"w": BIG + 1}, None)

OPERATIONS = {
    "insert_a_group": 3,
    "produce_for_rows_that_are_there": 6,
    "claim": 8,
    "claim_again": 8,
    "ack": 6,
    "delete_samples": 3,
    "insert": 3,
    "produce": 4,
    "pass_time": 3,
    "call_again": 3,
    "insert_for_a_time": 2,
    "revoke": 2,
    "follow": 2,
    "await_keys": 1,
    "renew": 1,
    "plan_clear": 3,
    "end_clear": 3,
    "extend": 2,
    "explain": 2,
    "watch": 2,
    "patch_custom_meta": 2,
    "patch_backend_meta": 2,
    "read": 2,
    "reset": 1,
    "release_worker": 1,
    "look_at_claims": 1,
    "look_at_clears": 1,
    "look_at_partitions": 1,
    "restart": 1,
    "checkpoint": 2,
    "go_back": 2,
    "put": 1,
    "patch_partition": 1,
    "seal": 1,
    "delete_partition": 1,
}

operations = st.sampled_from([name for name, times in OPERATIONS.items() for _ in range(times)])
partitions = st.sampled_from(("a",) * 14 + PARTITIONS)  # the first is what a shrunk example shows
prefixes = st.sampled_from(("", "a", "b", "ab"))
doomed = st.sampled_from(("b", "b", "c", "c", "a"))
tasks = st.sampled_from(TASKS)
times = st.sampled_from((2.0, 4.0, 9.0))
workers = st.sampled_from((None, "w", "v"))
modes = st.sampled_from(("merge", "update"))
key_lists = st.lists(st.sampled_from(KEYS), min_size=1, max_size=4, unique=True)
sizes = st.integers(0, 2)


def some_of(items: Sequence[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(items), min_size=1, max_size=6, unique=True)


def as_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


@st.composite
def columns(draw: st.DrawFn, values: tuple[Any, ...], rows: int) -> tuple[Column, list[Any]]:
    """A column, and the value it has for each row."""
    if rows and draw(st.booleans()):
        value = draw(st.sampled_from(values))
        return Const(as_json(value)), [value] * rows
    chosen = [draw(st.sampled_from(values)) for _ in range(rows)]
    return [as_json(value) for value in chosen], chosen


def one_shape(draw: st.DrawFn, name: str) -> list[int]:
    fixed = {"ids": [[4]], "mask": [[4], [3]], "image": [[2, 2], [2, 3]], "any": [[], [4], [2, 2]]}
    return draw(st.sampled_from(fixed[name]))


@st.composite
def schemas(draw: st.DrawFn, name: str, rows: int) -> tuple[SchemaIn, Schema]:
    """A field schema of a write, and what it means; mostly one that fits what others write of this field."""
    kind = draw(st.sampled_from(["shape"] * 3 + ["ragged", "lengths", "lengths const", "shapes", "shapes const"]))
    if name == "text" or (name == "any" and draw(st.booleans())):
        return SchemaIn(kind="object"), Schema("object")
    shape = one_shape(draw, name)
    if kind.startswith("lengths"):
        shape = shape[:1] or [1]
    dtype = draw(st.sampled_from([DTYPES[name]] * 7 + ["bfloat16"]))
    alike = kind in ("shape", "ragged", "lengths const", "shapes const")
    shapes = [shape if alike else [draw(sizes) for _ in shape] for _ in range(rows)]
    members: dict[str, Any] = {
        "shape": {"shape": shape},
        "ragged": {"shape": shape, "ragged": True},
        "lengths": {"lengths": [lengths[0] for lengths in shapes if lengths]},
        "lengths const": {"lengths": Same((shape or [0])[0])},
        "shapes": {"shapes": shapes},
        "shapes const": {"shapes": Same(shape)},
    }[kind]
    rank = None if kind == "shapes" and not rows else len(shape)
    meaning = Schema("tensor", dtype, kind != "shape", rank, None, [tuple(sizes) for sizes in shapes])
    return SchemaIn(dtype, **members), meaning


@st.composite
def declarations(draw: st.DrawFn, name: str) -> tuple[SchemaIn, Schema]:
    if name == "text":
        return SchemaIn(kind="object"), Schema("object")
    shape = draw(st.sampled_from([None, one_shape(draw, name)]))
    ragged = draw(st.sampled_from([None, False, True]))
    meaning = Schema(
        "tensor", DTYPES[name], bool(ragged), None if shape is None else len(shape), shape and tuple(shape)
    )
    if shape == []:
        meaning.shape = ()
    return SchemaIn(DTYPES[name], shape, ragged), meaning


@st.composite
def settings_of(draw: st.DrawFn) -> tuple[dict[str, SchemaIn], Settings]:
    """A partition's settings, as they come in and as they are meant."""
    declared = {name: draw(declarations(name)) for name in draw(st.lists(st.sampled_from(FIELDS), max_size=2))}
    expected, most = draw(st.sampled_from([None, 0, 3, 6])), draw(st.sampled_from([None, None, 5]))
    attempts = draw(st.sampled_from([5, 2, 1]))
    meaning = Settings(expected, most, attempts, {name: meant for name, (_, meant) in declared.items()})
    return {name: said for name, (said, _) in declared.items()}, meaning


everyday = st.just((SchemaIn("int64", [4]), Schema("tensor", "int64", False, 1)))


@st.composite
def writes(draw: st.DrawFn, rows: int, indexes: list[int] | None, keys: list[str] | None) -> tuple[RowWrite, Write]:
    """Rows with their groups and custom meta, sometimes."""
    groups = [draw(st.sampled_from(GROUPS)) for _ in range(rows)] if draw(st.booleans()) else None
    said, meant = draw(columns(PATCHES, rows)) if draw(st.booleans()) else (None, None)
    mode = draw(modes)
    return (
        RowWrite(indexes, keys, groups, said, custom_meta_mode=mode),
        Write(indexes, keys, groups, meant, mode=mode),
    )


@st.composite
def views(draw: st.DrawFn) -> View:
    """What the reply to an insert is to hold; columns are arrays."""
    parts = draw(st.none() | st.frozensets(st.sampled_from(sorted(ALL_PARTS))))
    return View(include=parts, expand=True, compact=draw(st.booleans()), share=draw(st.booleans()))


@st.composite
def productions(draw: st.DrawFn, rows: int) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Schemas and backend meta of a write: (said, meant, said, meant)."""
    names = draw(st.lists(st.sampled_from(FIELDS), max_size=3, unique=True))
    said = {name: draw(schemas(name, rows)) for name in names}
    backend = {name: draw(columns(CELLS, rows)) for name in names if draw(st.booleans())}
    return (
        {name: schema for name, (schema, _) in said.items()},
        {name: meant for name, (_, meant) in said.items()},
        {name: column for name, (column, _) in backend.items()},
        {name: meant for name, (_, meant) in backend.items()},
    )


SAMPLERS = ("sequential", "groups", "groups", "groups", "lifo", "priority", "budget", "random", "rank", "rank")
BY_RANK: list[ByRank] = [
    *(
        RankAware(n, rank, batch, by)
        for rank in (0, 1)
        for n, batch, by in ((1, 0, "group_id"), (1, 1, "group_id"), (2, 1, "group_id"), (2, 2, "position"))
    ),
    *(
        SeqlenBalanced(n, rank, batch, by, default=default)
        for rank in (0, 1)
        for n, batch, by, default in (
            (1, 0, "group_id", None),
            (1, 1, "group_id", 1.5),
            (2, 2, "group_id", None),
            (2, 1, "group_id", None),
            (2, 2, "position", 1),
        )
    ),
]
by_rank = st.sampled_from(BY_RANK)
defaults = st.sampled_from([None, None, 0, 1.5])
SHUFFLES = Random()  # one memory for all of a run: what it once put first it always puts first


@st.composite
def pickers(draw: st.DrawFn, sizes: tuple[int, ...]) -> Picker:
    """A sampler; groups are mostly of a size that there is."""
    name = draw(st.sampled_from(SAMPLERS))
    if name == "groups":
        by = draw(st.sampled_from(["group_id", "group_id", "position"]))
        return Groups(draw(st.sampled_from([*sizes, 1, 2, 2, 3])), by)
    if name == "rank":
        return draw(by_rank)
    if name == "budget":
        return TokenBudget(budget=draw(st.sampled_from([1.0, 3.0, 4.5])), default=draw(defaults))
    priority = Priority(default=draw(defaults))
    kinds: dict[str, Picker] = {"sequential": Picker(), "lifo": Lifo(), "priority": priority, "random": SHUFFLES}
    return kinds[name]


conditions = st.sampled_from(
    [
        {"path": "a", "op": "==", "value": 1},
        {"path": "a", "op": "!=", "value": 2},
        {"path": "b.c", "op": "exists"},
        *[{"path": path, "op": "exists", "value": False} for path in ("b", "b", "b", "w", "a", "b.c")],
        {"path": "b", "op": "prefix", "value": "x"},
        {"path": "w", "op": ">=", "value": 2},
        {"path": "w", "op": "in", "value": [1, "x"]},
    ]
)
wheres = st.lists(conditions, min_size=1, max_size=1) | st.lists(conditions, min_size=1, max_size=2)
