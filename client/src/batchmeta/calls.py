"""One call as a value, before it is sent: its route, query and body. No I/O, and no knowledge of replies."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, cast, overload
from urllib.parse import quote, urlencode
from uuid import uuid4

import msgspec
from msgspec import Raw

from .arguments import groups, items, maybe, refuse, text, texts, wholes
from .columns import Array, Column, Const
from .json_values import exact, quick, raw, to_json
from .wire import requests

LONGEST_WAIT_S = 60.0
LONGEST_URL = 60_000  # characters; httpx takes 65,536 of a path or a query
# The argument whose name follows this part of a route.
_ARGUMENTS = {
    "partitions": "partition_id",
    "tasks": "task",
    "claims": "claim_id",
    "workers": "worker",
    "clears": "clear_id",
    "checkpoints": "name",
}


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
    if idempotency_key is None:
        key = uuid4().hex
    else:
        key = header(idempotency_key, "idempotency_key")
        if not (1 <= len(key) <= 200 and key == key.strip()):
            raise ValueError(f"idempotency_key: {key!r} is not 1 to 200 characters, blanks only within")
    return Call(method, path, body=body, headers={**(headers or {}), "Idempotency-Key": key}, wait_s=wait_s)


def header(given: object, where: str) -> str:
    """What may stand in a header. ValueError for anything but printable ASCII characters."""
    value = text(given, where)
    if not (value.isascii() and value.isprintable()):
        raise ValueError(f"{where}: {value!r} is not all printable ASCII characters")
    return value


def route(*parts: str) -> str:
    """The path `/v1/part/part/…`. ValueError for a name that would lead to another route."""
    # A worker names the same few again and again; what is no text is not asked for in the cache, but refused.
    return _usual(*parts) if set(map(type, parts)) == {str} else _route(*parts)


def _route(*parts: str) -> str:
    return "/v1/" + "/".join(_part(part, _ARGUMENTS.get(before, "name")) for before, part in pairwise(("v1", *parts)))


_usual = lru_cache(512)(_route)


def _part(given: str, where: str) -> str:
    name = text(given, where)
    if name in ("", ".", ".."):
        raise ValueError(f"{where}: {name!r} is not a name")
    return _fitting(quote(name, safe="@"), where)


def _fitting(part: str, where: str) -> str:
    if len(part) > LONGEST_URL:
        raise ValueError(f"{where}: {len(part):,} characters in a URL, which holds {LONGEST_URL:,}")
    return part


def patience(wait_s: float) -> float:
    """Seconds that a call may take on top of the timeout. The service refuses a wait beyond these limits, at once."""
    return min(max(wait_s, 0.0), LONGEST_WAIT_S)


def query(request: requests.Request) -> str:
    """The query string of a GET; members that are None are left out."""
    members = {name: exact(value, name) for name, value in _members(request).items()}
    texts = {name: str(value).lower() if isinstance(value, bool) else value for name, value in members.items()}
    return _fitting(urlencode(texts, quote_via=quote), max(texts, key=lambda name: len(str(texts[name])), default=""))


def encode(request: requests.Request) -> bytes:
    """The body. Its members have been taken, one by one, by arguments.py and json_values.py."""
    return _encoder.encode(request)


@overload
def names(given: Iterable[str], where: str) -> list[str]: ...
@overload
def names(given: Iterable[str] | None, where: str) -> list[str] | None: ...
def names(given: Iterable[str] | None, where: str) -> list[str] | None:
    """A list of names. TypeError for a bare string, which is a sequence of letters too."""
    return maybe(texts, given, where)


@overload
def indexes(given: Iterable[int], where: str) -> list[int]: ...
@overload
def indexes(given: Iterable[int] | None, where: str) -> list[int] | None: ...
def indexes(given: Iterable[int] | None, where: str) -> list[int] | None:
    """A list of indexes. Those of a batch stay a column, whose JSON goes out as it came."""
    return cast("list[int]", given) if isinstance(given, Array) else maybe(wholes, given, where)


def group_list(given: Iterable[str | int] | None) -> list[str | int] | None:
    """A list of group ids. TypeError for a bare string."""
    return maybe(groups, given, "group_ids")


def cells(given: Sequence[Any] | None, where: str) -> Any:
    """A column of cells as JSON. TypeError for a single value; a mapping may only be `{"const": …}`."""
    if given is None:
        return None
    if type(given) is list or isinstance(given, Column | Mapping):
        return raw(given, where)
    return raw(items(given, where, "one value per row"), where)


def cell_columns(given: Mapping[str, Sequence[Any]] | None, where: str) -> Any:
    """Columns of cells by field, as JSON."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        refuse("a mapping from field names to columns", given, where)
    if _are_consts(given):
        with suppress(TypeError, ValueError):  # said below, with its place
            return {name: part.to_raw() for name, part in cast("Mapping[str, Const[Any]]", given).items()}
    # Many short columns are checked sooner all together; the place of what is wrong is found one by one.
    plain = {name: {"const": part.value} if type(part) is Const else part for name, part in given.items()}
    body = quick(plain) if set(map(type, plain.values())) <= {list, dict} else None
    if body is not None:
        return Raw(body)
    return {text(name, where): cells(column, f"{where}.{name}") for name, column in given.items()}


def _are_consts(given: Mapping[str, Sequence[Any]]) -> bool:
    """By names that need no further look."""
    return set(map(type, given.values())) == {Const} and set(map(type, given)) == {str} and "".join(given).isascii()


def conditions(given: Iterable[requests.Condition | Mapping[str, Any]] | None) -> list[requests.Condition] | None:
    """A list of conditions as JSON. TypeError for a single one, which is a mapping of its members."""
    listed = condition_list(given)
    return None if listed is None else cast("list[requests.Condition]", raw(listed, "where"))


def condition_list(given: Iterable[requests.Condition | Mapping[str, Any]] | None) -> list[Mapping[str, Any]] | None:
    """The same as mappings, to be used more than once."""
    if given is None:
        return None
    listed = items(given, "where", "a list of conditions")
    return [_members(each) if isinstance(each, requests.Condition) else each for each in listed]


def conditions_text(given: Iterable[requests.Condition | Mapping[str, Any]] | None) -> str | None:
    """The same as JSON, for a query."""
    listed = conditions(given)
    return None if listed is None else _encoder.encode(listed).decode()


def sampler_of(given: requests.Sampler | Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A sampler's name with its arguments beside it. TypeError for a bare name."""
    if given is None:
        return None
    if isinstance(given, requests.Sampler):
        given = _members(given)
    if not isinstance(given, Mapping):
        refuse('a mapping such as {"name": "lifo"}', given, "sampler")
    return cast("dict[str, Any]", raw(given, "sampler"))


def _members(request: requests.Request) -> dict[str, Any]:
    there = ((name, getattr(request, name)) for name in request.__struct_fields__)
    return {name: value for name, value in there if value is not None}


_encoder = msgspec.json.Encoder(enc_hook=to_json)
