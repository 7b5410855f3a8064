"""One call as a value, before it is sent: its route, query and body. No I/O, and no knowledge of replies."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast, overload
from urllib.parse import quote, urlencode
from uuid import uuid4

import msgspec

from .columns import Array, Column, Const
from .schema import FieldSchema
from .wire import requests


@dataclass(frozen=True, slots=True)
class Call:
    """A read, or a change under a key (see `change`): sent twice it does what it does once.

    `wait_s` is how many seconds the service may take on purpose, on top of the timeout. `resend`: it may be sent again
    when no answer came.
    `is_pinned`: refused in another epoch than the client's, where that has one.
    """

    method: str
    path: str
    query: str = ""
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    wait_s: float = 0.0
    resend: bool = True
    is_pinned: bool = True

    def in_any_epoch(self) -> "Call":
        """The same call, for whichever epoch it meets."""
        return replace(self, is_pinned=False)


def change(
    method: str,
    path: str,
    idempotency_key: str | None,
    *,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    wait_s: float = 0.0,
) -> Call:
    """A call that changes something, under the given key or a new one. However often it is sent, it is made once.

    ValueError for a key that is not 1 to 200 printable ASCII characters.
    """
    key = uuid4().hex if idempotency_key is None else idempotency_key
    if not (1 <= len(key) <= 200 and key.isascii() and key.isprintable() and key == key.strip()):
        raise ValueError(f"idempotency_key: {key!r} is not 1 to 200 printable ASCII characters, blanks only within")
    return Call(method, path, body=body, headers={**(headers or {}), "Idempotency-Key": key}, wait_s=wait_s)


def route(*parts: str) -> str:
    """The path `/v1/part/part/…`. ValueError for a name that would lead to another route."""
    for part in parts:
        if part in ("", ".", ".."):
            raise ValueError(f"{part!r} is not a name")
    return "/v1/" + "/".join(quote(part, safe="@") for part in parts)


def query(request: requests.Request) -> str:
    """The query string of a GET; members that are None are left out."""
    members: dict[str, Any] = msgspec.to_builtins(request)
    texts = {name: str(value).lower() if isinstance(value, bool) else value for name, value in members.items()}
    return urlencode(texts, quote_via=quote)


def encode(request: requests.Request) -> bytes:
    """The body. TypeError for what is not JSON, ValueError for a number that is not finite."""
    body = _encoder.encode(request)
    # The encoder writes NaN as null, which would delete the member of a custom meta. Only then is it worth a look.
    if b"null" in body:
        for member in ("custom_meta", "backend_meta"):
            _check_finite(getattr(request, member, None), member)
    return body


@overload
def names(given: Iterable[str]) -> list[str]: ...
@overload
def names(given: Iterable[str] | None) -> list[str] | None: ...
def names(given: Iterable[str] | None) -> list[str] | None:
    """A list of names. TypeError for a bare string, which is a sequence of letters too."""
    if isinstance(given, str):
        raise TypeError(f"a list of names is wanted, not the string {given!r}")
    return None if given is None else list(given)


@overload
def indexes(given: Iterable[int]) -> list[int]: ...
@overload
def indexes(given: Iterable[int] | None) -> list[int] | None: ...
def indexes(given: Iterable[int] | None) -> list[int] | None:
    """A list of indexes. Those of a batch stay a column, whose JSON goes out as it came."""
    if given is None or isinstance(given, Array):
        return cast("list[int] | None", given)
    return list(given)


def group_list(given: Iterable[str | int] | None) -> list[str | int] | None:
    """A list of group ids. TypeError for a bare string."""
    if isinstance(given, str):
        raise TypeError(f"a list of group ids is wanted, not the string {given!r}")
    return None if given is None else list(given)


def conditions(given: Iterable[requests.Condition | Mapping[str, Any]] | None) -> list[requests.Condition] | None:
    """A list of conditions. TypeError for a single one, which is a mapping of its members."""
    if isinstance(given, Mapping | requests.Condition | str):
        raise TypeError(f"a list of conditions is wanted, not {given!r}")
    return None if given is None else cast("list[requests.Condition]", list(given))


def conditions_text(given: Iterable[requests.Condition | Mapping[str, Any]] | None) -> str | None:
    """The same as JSON, for a query."""
    listed = conditions(given)
    return None if listed is None else _encoder.encode(listed).decode()


def wire_schema(schemas: Mapping[str, Any]) -> dict[str, Any]:
    """Field schemas as they are written: those of a batch in their wire form, all others as they are."""
    return {name: part.to_wire() if isinstance(part, FieldSchema) else part for name, part in schemas.items()}


def _to_json(value: Any) -> Any:
    if isinstance(value, Column):
        return value.to_raw()
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__module__}.{type(value).__qualname__} is not JSON; give lists, dicts and numbers")


def _check_finite(value: Any, where: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{where}: {value} is not a number that JSON knows")
    if isinstance(value, Mapping):
        for name, part in value.items():
            _check_finite(part, f"{where}.{name}")
    elif isinstance(value, Column | list | tuple):
        for part in [value.value] if isinstance(value, Const) else value:
            _check_finite(part, where)


_encoder = msgspec.json.Encoder(enc_hook=_to_json)
