"""The values that callers may give, by kind of argument: each with what is sent for it, or how it is refused.

Values of numpy and torch are included where these are installed; with CI=true they must be.
"""

import datetime
import enum
import math
import os
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from batchmeta import Array, Const, FieldSchema
from batchmeta.wire import requests

NAN, INF = math.nan, math.inf


class Text(str):
    __slots__ = ()


class Int(int):
    pass


class Float(float):
    pass


class Word(str, enum.Enum):  # noqa: UP042 - the older way, which is no StrEnum
    A = "a"


class Number(enum.IntEnum):
    THREE = 3


class Odd(enum.Enum):
    A = NAN


@dataclass
class Data:
    reward: float = NAN


class Record(msgspec.Struct):
    reward: float = NAN


@dataclass
class Fresh:
    """Made anew for each use, as it can be used up."""

    make: Callable[[], Any]


def there(name: str) -> Any:
    """The package, or None where it is not installed."""
    if find_spec(name) is None and os.environ.get("CI") != "true":
        return None
    return import_module(name)


np, torch = there("numpy"), there("torch")


@dataclass(eq=False)
class Kind:
    """`taken`: what is given and what goes out. `refused`: what is given, the error and where below the argument."""

    taken: list[tuple[Any, Any]]
    refused: list[tuple[Any, type[Exception], str]] = field(default_factory=list)


def within(itself: list[Any]) -> list[Any]:
    itself.append(itself)
    return itself


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def letters() -> Iterator[str]:
    yield from "ab"


NO_ARGUMENT: list[tuple[Any, type[Exception], str]] = [
    (value, TypeError, ": ") for value in (b"a", bytearray(b"a"), Data(), Record(), Odd.A, Decimal(1), object())
]
NO_LIST: list[tuple[Any, type[Exception], str]] = [
    *NO_ARGUMENT,
    *((value, TypeError, ": ") for value in ("ab", Text("ab"), Word.A, 5, NAN, INF, True, {"a": 1})),
]
NO_CELL: list[tuple[Any, type[Exception]]] = [
    *((value, TypeError) for value in (b"a", bytearray(b"a"), memoryview(b"a"), Data(), Record(), Odd.A, Decimal(1))),
    *((value, TypeError) for value in (object(), {1}, frozenset({1}), {}.keys(), 1j, Data, msgspec.UNSET, letters())),
    *((value, TypeError) for value in (datetime.datetime(1, 1, 1, tzinfo=datetime.UTC), datetime.date(1, 1, 1))),
    *((value, TypeError) for value in (datetime.timedelta(1), UUID(int=1), {1: 1}, {b"a": 1}, {(1,): 1}, {True: 1})),
    *((value, ValueError) for value in (NAN, INF, -INF, Float("nan"), [NAN], (INF,), {"a": NAN}, deque([NAN]))),
    *((value, ValueError) for value in (2**64, -(2**63) - 1, 10**400, "\ud800", {"\ud800": 1}, within([]))),
    (within([1] * 1000), ValueError),
    (deep(66), ValueError),
]
CELLS: list[tuple[Any, Any]] = [
    *((value, value) for value in (None, True, 0, -(2**63), 2**64 - 1, 0.5, -0.0, "", "\u00e9", [], {}, {"a": [{}]})),
    (Text("ab"), "ab"),
    (Int(3), 3),
    (Float(0.5), 0.5),
    (Word.A, "a"),
    (Number.THREE, 3),
    ((1, (2,)), [1, [2]]),
    (range(2), [0, 1]),
    (deque([1]), [1]),
    (OrderedDict(a=(1,)), {"a": [1]}),
    ({Text("k"): 1, Word.A: 2}, {"k": 1, "a": 2}),
    (Array([1, Text("b")]), [1, "b"]),
]
TEXT = Kind(
    [("a", "a"), (Text("ab"), "ab"), (Word.A, "a"), ("", ""), ("\u00e9 /&,", "\u00e9 /&,")],
    [
        *NO_ARGUMENT,
        *((value, TypeError, ": ") for value in (5, Number.THREE, NAN, True, ["a"], {"a": 1})),
        ("\ud800", ValueError, ": "),
    ],
)
# Nothing of a path goes out.
PATH = Kind(
    [(__file__, None), (Path(__file__), None), (Text(__file__), None)],
    [*NO_ARGUMENT, *((value, TypeError, ": ") for value in (5, None, True, ["a"]))],
)
NAME = Kind(TEXT.taken[:3], [*TEXT.refused, ("", ValueError, ""), ("..", ValueError, "")])
NO_HEADER = [("a\r\nX-Other: b", ValueError, ": "), ("\x00", ValueError, ": "), ("é", ValueError, ": ")]
HEADER = Kind(TEXT.taken[:3], [*TEXT.refused, *NO_HEADER])
KEY = Kind(TEXT.taken[:3], [*TEXT.refused, *NO_HEADER, ("", ValueError, ": "), ("a" * 201, ValueError, ": ")])
WHOLE = Kind(
    [(3, 3), (Int(3), 3), (Number.THREE, 3), (-1, -1), (2**64 - 1, 2**64 - 1)],
    [
        *NO_ARGUMENT,
        *((value, TypeError, ": ") for value in (True, 1.5, "3", Text("3"), [3], {})),
        *((value, ValueError, ": ") for value in (NAN, INF, -INF, Float("nan"), 2**64, -(2**63) - 1)),
    ],
)
REAL = Kind(
    [(3, 3), (2.5, 2.5), (Int(3), 3), (Float(2.5), 2.5), (Number.THREE, 3), (-1, -1), (1e300, 1e300)],
    [
        *NO_ARGUMENT,
        *((value, TypeError, ": ") for value in (True, "3", [3], {}, 1j)),
        *((value, ValueError, ": ") for value in (NAN, INF, -INF, Float("nan"), 10**400)),
    ],
)
SECONDS = Kind([pair for pair in REAL.taken if pair[0] != -1], [*REAL.refused, (-1, ValueError, ": ")])
LOOP_SECONDS = Kind(SECONDS.taken, [*REAL.refused, (-1, ValueError, " "), (0, ValueError, " ")])
FLAG = Kind(
    [(True, True)],
    [*NO_ARGUMENT, *((value, TypeError, ": ") for value in (1, 0, "", "no", None, NAN, [True], []))],
)
TEXTS = Kind(
    [
        (["a", "b"], ["a", "b"]),
        (("a", Text("bc")), ["a", "bc"]),
        ([Word.A, "\u00e9"], ["a", "\u00e9"]),
        (Fresh(letters), ["a", "b"]),
        ({"a": 1}.keys(), ["a"]),
        (Array(["a", Text("bc")]), ["a", "bc"]),
    ],
    [
        *NO_LIST,
        *(([value], TypeError, "[0]: ") for value in (b"a", 5, None, NAN, True, ["a"], ("a",), Data(), Odd.A)),
        (["a", 5], TypeError, "[1]: "),
        (["a", "\ud800"], ValueError, "[1]: "),
    ],
)
WHOLES = Kind(
    [
        ([], []),
        ([3, 1], [3, 1]),
        ((3, Int(1)), [3, 1]),
        ([Number.THREE, 1], [3, 1]),
        (range(2), [0, 1]),
        (Array([1, Int(2)]), [1, 2]),
        (Const(1, 2), [1, 1]),
        (Fresh(lambda: iter([3])), [3]),
        ([2**63 - 1] * 2, [2**63 - 1] * 2),
    ],
    [
        *NO_LIST,
        *(([value], TypeError, "[0]: ") for value in (True, 1.5, "3", b"3", None, [3], Data(), Odd.A)),
        *(([1, value], ValueError, "[1]: ") for value in (NAN, INF, 2**64)),
    ],
)
ACCEPT = Kind([*WHOLES.taken, ("all", "all"), (Text("all"), "all")], [*WHOLES.refused])
REJECT = Kind(
    [
        ({}, None),
        ({3: "r"}, [{"global_index": 3, "reason": "r"}]),
        ({Int(3): Text("r")}, [{"global_index": 3, "reason": "r"}]),
    ],
    [
        *NO_ARGUMENT,
        *((value, TypeError, ": ") for value in ("a", [3], 3, NAN, {"3": "r"}, {True: "r"}, {1.5: "r"})),
        *(({3: value}, TypeError, "[3]: ") for value in (b"r", 5, None, NAN, ["r"], Data())),
        ({NAN: "r"}, ValueError, ": "),
    ],
)
GROUPS = Kind(
    [([], []), (["g", 7], ["g", 7]), ((Text("g"), Int(7), Word.A), ["g", 7, "a"]), (Fresh(lambda: iter(["g"])), ["g"])],
    [
        *NO_LIST,
        *(([value], TypeError, "[0]: ") for value in (True, 1.5, b"g", None, ["g"], Data(), Odd.A, NAN)),
        (["\ud800"], ValueError, "[0]: "),
    ],
)
COLUMN = Kind(
    [
        ([], []),
        (({"a": 1}, None), [{"a": 1}, None]),
        (Fresh(lambda: iter([{}])), [{}]),
        (deque([{}]), [{}]),
        ({"const": {"a": 1}}, {"const": {"a": 1}}),
        (Const({"a": Text("bc")}), {"const": {"a": "bc"}}),
        (Array([{"a": (1,)}]), [{"a": [1]}]),
        *(([{}, {"reward": value}], [{}, {"reward": out}]) for value, out in CELLS),
        *((Const(value), {"const": out}) for value, out in CELLS),
    ],
    [
        *((value, error, where) for value, error, where in NO_LIST if value != {"a": 1}),
        *(([{}, {"reward": value}], error, "[1].reward") for value, error in NO_CELL),
        # One that is so long that it is looked at in another way.
        *(([{"a": "b" * 20_000}, {"reward": value}], error, "[1].reward") for value, error in NO_CELL),
        *((Const({"reward": value}), error, ".reward") for value, error in NO_CELL),
    ],
)
COLUMNS = Kind(
    [
        ({}, {}),
        ({Text("f"): ["1"]}, {"f": ["1"]}),
        ({Word.A: Const(1), "g": (2,)}, {"a": {"const": 1}, "g": [2]}),
        *(({"f": column}, {"f": out}) for column, out in COLUMN.taken if not isinstance(column, Fresh)),
    ],
    [
        *((value, TypeError, ": ") for value in ("ab", b"ab", 5, NAN, ["a"], Data(), Odd.A)),
        *(({"f": column}, error, f".f{where}") for column, error, where in COLUMN.refused),
        ({1: ["1"]}, TypeError, ": "),
    ],
)
DECLARED = Kind(
    [
        ({}, {}),
        ({"f": {"dtype": Text("int64"), "shape": (3, Int(4))}}, {"f": {"dtype": "int64", "shape": [3, 4]}}),
        ({"f": {"dtype": "torch.bool", "ragged": True}}, {"f": {"dtype": "bool", "ragged": True}}),
        ({"f": OrderedDict(kind="object")}, {"f": {"kind": "object"}}),
        ({"f": FieldSchema("object")}, {"f": {"kind": "object"}}),
        ({"f": requests.FieldDeclaration(dtype="int8")}, {"f": {"dtype": "int8"}}),
    ],
    [
        *((value, TypeError, ": ") for value in ("ab", b"ab", 5, NAN, ["a"], Data(), Odd.A)),
        *(({"f": value}, TypeError, ".f: ") for value in ("int64", b"a", 5, NAN, None, ["a"], Data())),
        *(({"f": {"dtype": value}}, ValueError, ".f.dtype: ") for value in ("float", "", b"a", 5, NAN, float, Odd.A)),
        *(({"f": {"shape": [2, value]}}, error, ".f.shape[1]") for value, error in NO_CELL),
        ({1: {}}, TypeError, ": "),
    ],
)
SCHEMAS = Kind(
    [
        *DECLARED.taken,
        ({"f": {"lengths": range(2)}}, {"f": {"lengths": [0, 1]}}),
        ({"f": {"lengths": Const(3)}}, {"f": {"lengths": {"const": 3}}}),
        ({"g": {"shapes": [(1,), [2]]}}, {"g": {"shapes": [[1], [2]]}}),
        (
            {"f": FieldSchema("tensor", "torch.int8", ragged=True, lengths=Array([Int(3)]))},
            {"f": {"kind": "tensor", "dtype": "int8", "ragged": True, "lengths": [3]}},
        ),
    ],
    [
        *DECLARED.refused,
        *(({"f": {"lengths": [2, value]}}, error, ".f.lengths[1]") for value, error in NO_CELL),
        *(({"f": {"shapes": [[2], [value]]}}, error, ".f.shapes[1][0]") for value, error in NO_CELL),
        ({"f": {"lengths": {3, 4}}}, TypeError, ".f.lengths: "),
    ],
)
CONDITION = {"path": "n", "op": "=="}
WHERE = Kind(
    [
        ([], []),
        (Fresh(lambda: iter([CONDITION])), [CONDITION]),
        (
            [{"path": ("a", Text("bc")), "op": Text("in"), "value": (1, Float(0.5))}],
            [{"path": ["a", "bc"], "op": "in", "value": [1, 0.5]}],
        ),
        ([requests.Condition(path=Word.A, op="==", value=Int(3))], [{"path": "a", "op": "==", "value": 3}]),
        *(([{**CONDITION, "value": value}], [{**CONDITION, "value": out}]) for value, out in CELLS),
    ],
    [
        *NO_LIST,
        (requests.Condition(path="n", op="=="), TypeError, ": "),
        *(([CONDITION, {**CONDITION, "value": value}], error, "[1].value") for value, error in NO_CELL),
        ([{"path": b"a", "op": "=="}], TypeError, "[0].path: "),
    ],
)
SAMPLER = Kind(
    [
        ({"name": Text("mine"), "far": (1,)}, {"name": "mine", "far": [1]}),
        (requests.Sampler(name=Word.A, seed=Int(3), weight=("a",)), {"name": "a", "seed": 3, "weight": ["a"]}),
        *(({"name": "mine", "x": value}, {"name": "mine", "x": out}) for value, out in CELLS),
    ],
    [
        *NO_ARGUMENT,
        *((value, TypeError, ": ") for value in ("lifo", ["lifo"], 5, NAN)),
        *(({"name": "mine", "x": value}, error, ".x") for value, error in NO_CELL),
        (requests.Sampler(name="token_budget", budget=NAN), ValueError, ".budget: "),
    ],
)

if np is not None:
    CELLS_NP = [
        (np.array(["gsm8k"])[0], "gsm8k"),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.bool_(True), True),
        (np.arange(4).reshape(2, 2), [[0, 1], [2, 3]]),
        (np.array(1.5), 1.5),
    ]
    NOT_NP = [
        (np.float64(NAN), ValueError),
        (np.array([1.0, INF])[1], ValueError),
        (np.bytes_(b"a"), TypeError),
        (np.datetime64("2026-01-01"), TypeError),
        (np.complex64(1), TypeError),
        (np.float32, TypeError),
        (np.array([b"a"]), TypeError),
    ]
    COLUMN.taken += [([{}, {"reward": value}], [{}, {"reward": out}]) for value, out in CELLS_NP]
    COLUMN.taken += [(np.arange(2), [0, 1]), (Const(np.int64(3)), {"const": 3}), (Array(np.array(["a"])), ["a"])]
    COLUMN.refused += [([{}, {"reward": value}], error, "[1].reward") for value, error in NOT_NP]
    COLUMNS.taken += [({"f": np.array(["a"]), "g": [1]}, {"f": ["a"], "g": [1]}), ({"f": [np.int64(1)]}, {"f": [1]})]
    COLUMNS.refused += [({"f": [1, value]}, error, ".f[1]") for value, error in NOT_NP]
    for kind in (TEXT, NAME, HEADER, KEY):
        kind.taken.append((np.str_("a"), "a"))
        kind.refused += [(np.bytes_(b"a"), TypeError, ": "), (np.array(["a"]), TypeError, ": ")]
    WHOLE.taken += [(np.int64(3), 3), (np.uint8(3), 3), (np.array(3), 3)]
    WHOLE.refused += [(value, TypeError, ": ") for value in (np.bool_(True), np.float64(3), np.array([3]))]
    for kind in (REAL, SECONDS, LOOP_SECONDS):
        kind.taken += [(np.float32(2.5), 2.5), (np.int64(3), 3), (np.array(2.5), 2.5)]
        kind.refused += [(np.float32(NAN), ValueError, ": "), (np.array([1.0]), TypeError, ": ")]
    FLAG.taken.append((np.bool_(True), True))
    FLAG.refused += [(np.array([True]), TypeError, ": "), (np.int64(1), TypeError, ": ")]
    TEXTS.taken.append((np.array(["a", "bc"]), ["a", "bc"]))
    TEXTS.refused += [(np.array([b"a"]), TypeError, "[0]: "), (np.array("a"), TypeError, ": ")]
    WHOLES.taken += [(np.array([3, 1], np.uint8), [3, 1]), ([np.int64(3), 1], [3, 1])]
    ACCEPT.taken += WHOLES.taken[-2:]
    WHOLES.refused += [
        (np.array([True, False]), TypeError, "[0]: "),
        (np.array([1.0]), TypeError, "[0]: "),
        (np.array([[1]]), TypeError, "[0]: "),
        (np.array(1), TypeError, ": "),
        (np.array([NAN]), ValueError, "[0]: "),
    ]
    REJECT.taken.append(({np.int64(3): np.str_("r")}, [{"global_index": 3, "reason": "r"}]))
    GROUPS.taken.append((np.array([7, 8]), [7, 8]))
    GROUPS.taken.append(([np.str_("g"), np.int64(7)], ["g", 7]))
    DECLARED.taken += [
        ({"f": {"dtype": given, "shape": np.array([2])}}, {"f": {"dtype": "float32", "shape": [2]}})
        for given in (np.float32, np.dtype("float32"), np.str_("float32"))
    ]
    DECLARED.refused += [
        ({"f": {"dtype": np.dtype(name)}}, ValueError, ".f.dtype: ")
        for name in ("U4", "object", ">f4", "datetime64[s]")
    ]
    SCHEMAS.taken += DECLARED.taken[-3:]
    SCHEMAS.taken.append(({"f": {"lengths": np.array([3, 4])}}, {"f": {"lengths": [3, 4]}}))
    SCHEMAS.taken.append(({"f": {"shapes": [np.array([3]), (np.int64(4),)]}}, {"f": {"shapes": [[3], [4]]}}))
    SCHEMAS.refused += DECLARED.refused[-4:]
    WHERE.taken.append(([{**CONDITION, "value": np.array([1, 2])}], [{**CONDITION, "value": [1, 2]}]))
    SAMPLER.taken.append((requests.Sampler(name="lifo", dp_rank=np.int64(1)), {"name": "lifo", "dp_rank": 1}))

if torch is not None:
    CELLS_TORCH = [
        (torch.tensor(0.5), 0.5),
        (torch.tensor(3), 3),
        (torch.tensor(True), True),
        (torch.ones(1, 2), [[1.0, 1.0]]),
        (torch.tensor(0.5, dtype=torch.bfloat16, requires_grad=True), 0.5),
        (torch.Size([2, 3]), [2, 3]),
    ]
    COLUMN.taken += [([{}, {"reward": value}], [{}, {"reward": out}]) for value, out in CELLS_TORCH]
    COLUMN.refused.append(([{"reward": torch.tensor([1.0, NAN])}], ValueError, "[0].reward[1]"))
    WHOLE.taken.append((torch.tensor(3), 3))
    WHOLE.refused += [(value, TypeError, ": ") for value in (torch.tensor(True), torch.tensor([3]), torch.tensor(3.0))]
    for kind in (REAL, SECONDS, LOOP_SECONDS):
        kind.taken.append((torch.tensor(2.5), 2.5))
        kind.refused.append((torch.tensor(INF), ValueError, ": "))
    FLAG.taken.append((torch.tensor(True), True))
    WHOLES.taken += [(torch.tensor([3, 1]), [3, 1]), ([torch.tensor(3)], [3])]
    ACCEPT.taken += WHOLES.taken[-2:]
    WHOLES.refused.append((torch.tensor([True]), TypeError, "[0]: "))
    GROUPS.taken.append((torch.tensor([7]), [7]))
    DECLARED.taken += [
        ({"f": {"dtype": given, "shape": torch.Size([2])}}, {"f": {"dtype": "bfloat16", "shape": [2]}})
        for given in (torch.bfloat16, "torch.bfloat16", str(torch.bfloat16))
    ]
    DECLARED.refused.append(({"f": {"dtype": torch.strided}}, ValueError, ".f.dtype: "))
    SCHEMAS.taken += DECLARED.taken[-3:]
    SCHEMAS.taken.append(({"f": {"lengths": torch.tensor([3, 4])}}, {"f": {"lengths": [3, 4]}}))
    SCHEMAS.taken.append(
        (
            {"f": FieldSchema("tensor", torch.int8, shape=torch.Size([3]))},
            {"f": {"kind": "tensor", "dtype": "int8", "ragged": False, "shape": [3]}},
        )
    )
