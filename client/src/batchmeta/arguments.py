"""Converts a caller's single values and flat lists to text, numbers and flags; each refusal names the argument.

Values of numpy, torch and the like are known by what they can do (`tolist`, `__index__`): no such package is imported.
What JSON values may hold is in json_values.py.
"""

import math
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import compress
from numbers import Real
from operator import index
from pathlib import Path
from reprlib import repr as short
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")
BYTES = bytes | bytearray | memoryview


def maybe(take: Callable[[Any, str], T], given: object, where: str) -> T | None:
    """`given` as `take` takes it; None stays None."""
    return None if given is None else take(given, where)


def text(given: object, where: str) -> str:
    """A text, exactly str: of a subclass its characters. ValueError for what UTF-8 cannot hold."""
    if type(given) is str and given.isascii():
        return given
    value = unboxed(given)
    if not isinstance(value, str):
        refuse("text", given, where)
    exact = str.__str__(value)
    if not exact.isascii():
        check_encodable(exact, where)
    return exact


def file_path(given: object) -> Path:
    """The path of a file. TypeError for what is none."""
    if not isinstance(given, str | os.PathLike):
        refuse("the path of a file", given, "path")
    return Path(given)


def whole(given: object, where: str) -> int:
    """A whole number, by `__index__`; TypeError for a bool, which counts nothing.

    ValueError for NaN, the infinities and what 64 bits do not hold.
    """
    value = unboxed(given)
    if isinstance(value, float):
        _check_finite(value, given, where)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        refuse("a whole number", given, where)
    number = index(value)
    if not -(2**63) <= number < 2**64:
        raise ValueError(f"{where}: {short(number)} is no whole number of 64 bits")
    return number


def real(given: object, where: str) -> float:
    """A finite number; ValueError for NaN, the infinities and what no float can hold."""
    value = unboxed(given)
    if isinstance(value, bool) or not isinstance(value, Real):
        refuse("a number", given, where)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    _check_finite(number, given, where)
    return number


def seconds(given: object, where: str) -> float:
    """A time that the client itself waits: finite and not negative."""
    number = real(given, where)
    if number < 0:
        raise ValueError(f"{where}: {short(given)} is less than no time")
    return number


def flag(given: object, where: str) -> bool:
    """True or False; TypeError for all else, also for what Python would take as one of them."""
    if given is True or given is False:
        return given
    value = unboxed(given)
    if not isinstance(value, bool):
        refuse("True or False", given, where)
    return value


def items(given: object, where: str, wanted: str = "a list") -> list[Any]:
    """What an array, a column or any iterable holds. TypeError for a text, bytes or a mapping, which is one value."""
    if type(given) is list:
        return given.copy()
    value = unboxed(given)
    if isinstance(value, str | Mapping | BYTES) or not isinstance(value, Iterable):
        refuse(wanted, given, where)
    return list(value)


def texts(given: object, where: str) -> list[str]:
    """A list of texts, such as names."""
    listed = items(given, where, "a list of names")
    with suppress(TypeError):  # all in one pass; the encoder writes a subclass as its characters
        if "".join(listed).isascii():
            return listed
    return [text(each, f"{where}[{place}]") for place, each in enumerate(listed)]


def wholes(given: object, where: str) -> list[int]:
    """A list of whole numbers, such as indexes."""
    listed = items(given, where, "a list of whole numbers")
    with suppress(TypeError):  # all in one pass; a list that begins with a bool is a mask
        total = sum(listed)
        if type(total) is int and abs(total) < 2**63 and (not listed or type(listed[0]) is not bool):
            return listed
    return [whole(each, f"{where}[{place}]") for place, each in enumerate(listed)]


def groups(given: object, where: str) -> list[str | int]:
    """A list of group ids: texts and whole numbers."""
    listed = items(given, where, "a list of group ids")
    return [_group(unboxed(each), f"{where}[{place}]") for place, each in enumerate(listed)]


def positions(given: object, size: int) -> list[int]:
    """Positions among `size` rows; a mask, one bool per row, stands for those where it is True.

    ValueError for a mask of another length, TypeError for a mix of bools and numbers.
    """
    listed = [unboxed(each) for each in items(given, "positions", "positions or a mask")]
    if set(map(type, listed)) != {bool}:
        return order(listed)
    if len(listed) != size:
        raise ValueError(f"positions: a mask of {len(listed)} values for {size} rows")
    return list(compress(range(size), listed))


def order(given: object) -> list[int]:
    """Positions that no mask can stand for."""
    return [whole(each, f"positions[{place}]") for place, each in enumerate(items(given, "positions", "positions"))]


def unboxed(value: Any) -> Any:
    """An array as a list, its scalar as Python's; all else as it is."""
    if isinstance(value, type | memoryview) or not hasattr(value, "tolist"):
        return value
    return value.tolist()


def check_encodable(value: str, where: str) -> None:
    """ValueError for a lone surrogate, which UTF-8 cannot hold."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{where}: {short(value)} has a lone surrogate, which is no text in UTF-8") from None


def refuse(wanted: str, given: object, where: str) -> NoReturn:
    """TypeError that says what was wanted, where, and what came."""
    kind = type(given)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    raise TypeError(f"{where}: {wanted} is wanted, not {short(given)} ({name})")


def _check_finite(value: float, given: object, where: str) -> None:
    if not math.isfinite(value):
        raise ValueError(f"{where}: {short(given)} is not a finite number")


def _group(value: object, where: str) -> str | int:
    if isinstance(value, bool) or not (isinstance(value, str) or hasattr(value, "__index__")):
        refuse("a group id, text or a whole number,", value, where)
    return text(value, where) if isinstance(value, str) else whole(value, where)
