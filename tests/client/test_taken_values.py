"""Every argument with every value of its kind: what goes on the wire for it, or how it is refused before it is sent."""

import inspect
import json
import subprocess
import sys
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from msgspec import UNSET

from batchmeta import Array, AsyncClient, AsyncLease, BatchMeta, Client, Const, FieldSchema, InvalidRequest, Retries
from batchmeta.calls import conditions, sampler_of
from batchmeta.schema import wire_schemas
from batchmeta.values import Claim
from batchmeta.wire import requests
from tests.client import given
from tests.client.arguments import IN_ROUTE, OTHER, SAME, arguments, calls, kind_of, with_needed
from tests.client.given import Fresh, Kind
from tests.client.service import Scripted, batch, client, problem

WIRE_NAMES = {"all_rows": "all"}
IN_QUERY_AS_TEXT = {"prefix", "partition_id", "task", "worker", "state"}


def test_every_argument_has_a_kind() -> None:
    assert [pair for pair in arguments() if pair not in OTHER and pair[1] not in SAME] == []
    assert len(calls()) > 25


async def run(aio: AsyncClient, call: str, named: dict[str, Any]) -> None:
    if call == "claims":
        await aio.claims(**named).next_lease()
    elif call == "lease.ack":
        held = Claim("p", 1, "c", BatchMeta.from_dict(batch([0, 1])), token="k")
        await AsyncLease(held, 60.0, calls=aio, hasty=aio, sleep=Retries().sleep).ack(**named)
    else:
        await getattr(aio, call)(**named)


def sent(request: httpx.Request, call: str, argument: str) -> Any:
    """What went out for the argument, wherever it stands in a request; None for nothing."""
    headers = {"idempotency_key": "Idempotency-Key", "if_match": "If-Match"}
    if argument in headers:
        return request.headers[headers[argument]]
    name = WIRE_NAMES.get(argument, argument)
    is_file = request.headers.get("Content-Type") == "application/octet-stream"
    body = json.loads(request.content) if not is_file and request.content else {}
    if name in body:
        return body[name]
    if name in request.url.params:
        text = request.url.params[name]
        return text.split(",") if call == "production" else text if name in IN_QUERY_AS_TEXT else json.loads(text)
    parts = request.url.raw_path.decode().partition("?")[0].split("/")
    return {IN_ROUTE.get(before): unquote(part) for before, part in pairwise(parts)}.get(name)


def same(found: Any, out: Any) -> bool:
    """Equal, and not only to Python, for which True is 1."""
    if isinstance(found, float) or isinstance(out, float):
        return not isinstance(found, bool) and bool(found == out)
    return json.dumps(found, sort_keys=True) == json.dumps(out, sort_keys=True)


def made(value: Any) -> Any:
    return value.make() if isinstance(value, Fresh) else value


@pytest.mark.asyncio
@pytest.mark.parametrize(("call", "argument"), arguments())
async def test_what_goes_out(call: str, argument: str) -> None:
    script = Scripted(problem("invalid-request"))
    aio = client(script)
    for value, out in kind_of(call, argument).taken:
        with pytest.raises(InvalidRequest):
            await run(aio, call, with_needed(call, argument, made(value)))
        found = sent(script.requests.pop(), call, argument)
        if (call, out) != ("lease.ack", []):
            assert same(found, out), f"{call}({argument}={value!r:.200}): {found!r:.200}"


@pytest.mark.asyncio
@pytest.mark.parametrize(("call", "argument"), arguments())
async def test_what_is_refused_before_it_is_sent(call: str, argument: str) -> None:
    script = Scripted(problem("invalid-request"))
    aio = client(script)
    for value, error, where in kind_of(call, argument).refused:
        with pytest.raises((TypeError, ValueError)) as raised:
            await run(aio, call, with_needed(call, argument, value))
        told = f"{call}({argument}={value!r:.200}): {raised.value!r:.300}"
        assert isinstance(raised.value, error), told
        assert f"{argument}{where}" in str(raised.value), told
        assert not script.requests, told


HUGE = {given.TEXT: "a" * 70_000, given.NAME: "a" * 70_000, given.TEXTS: ["a" * 70_000]}


@pytest.mark.asyncio
@pytest.mark.parametrize(("call", "argument"), [pair for pair in arguments() if kind_of(*pair) in HUGE])
async def test_a_huge_text_goes_out_or_is_too_long_for_a_url(call: str, argument: str) -> None:
    value = HUGE[kind_of(call, argument)]
    script = Scripted(problem("invalid-request"))
    with pytest.raises((InvalidRequest, ValueError)) as raised:
        await run(client(script), call, with_needed(call, argument, value))
    if isinstance(raised.value, InvalidRequest):
        assert sent(script.requests.pop(), call, argument) == value
    else:
        assert f"{argument}: 70,0" in str(raised.value)
    assert not script.requests


def test_the_blocking_client_has_the_same_arguments() -> None:
    for name, call in calls().items():
        if name != "lease.ack":
            assert inspect.signature(getattr(Client, name)).parameters == inspect.signature(call).parameters


@pytest.mark.parametrize("argument", requests.Sampler.__struct_fields__)
def test_each_argument_of_a_sampler_is_looked_at(argument: str) -> None:
    for value, error in given.NO_CELL:
        sampler = requests.Sampler(**{"name": "lifo", argument: value})
        with pytest.raises(error, match=rf"sampler\.{argument}"):
            sampler_of(sampler)


@pytest.mark.parametrize("member", requests.Condition.__struct_fields__)
def test_each_member_of_a_condition_is_looked_at(member: str) -> None:
    for value, error in given.NO_CELL:
        condition = requests.Condition(**{"path": "n", "op": "==", member: value})
        with pytest.raises(error, match=rf"where\[0\]\.{member}"):
            conditions([condition])


@pytest.mark.parametrize("member", FieldSchema.__struct_fields__)
def test_each_member_of_a_field_schema_is_looked_at(member: str) -> None:
    for value, error in [pair for pair in given.NO_CELL if pair[0] is not UNSET]:
        schema = FieldSchema(**{"kind": "tensor", "dtype": "int8", member: value})
        with pytest.raises(ValueError if member == "dtype" else error, match=rf"field_schema\.f\.{member}"):
            wire_schemas({"f": schema}, "field_schema")


SETTINGS: dict[Any, dict[str, Kind | None]] = {
    # None: an object of its own, which is used as it is.
    AsyncClient: {
        "timeout": given.SECONDS,
        "pin_epoch": given.FLAG,
        "base_url": None,
        "retries": None,
        "transport": None,
    },
    Retries: {
        "most": given.WHOLE,
        "first_s": given.SECONDS,
        "longest_s": given.SECONDS,
        "within_s": given.SECONDS,
        "clock": None,
        "random": None,
        "sleep": None,
    },
    Const: {"value": None, "size": given.WHOLE},
    Array: {"values": None},
}


@pytest.mark.parametrize("owner", SETTINGS, ids=lambda owner: owner.__name__)
def test_settings(owner: Any) -> None:
    assert set(inspect.signature(owner).parameters) == set(SETTINGS[owner])
    needed = {"value": 1} if owner is Const else {}
    for argument, kind in SETTINGS[owner].items():
        for value, _ in kind.taken if kind else ():
            owner(**needed, **{argument: value})
        for value, error, where in kind.refused if kind else ():
            with pytest.raises(error) as raised:
                owner(**needed, **{argument: value})
            assert f"{argument}{where}" in str(raised.value)


@pytest.mark.parametrize("values", ["ab", b"ab", {"a": 1}, 5, given.Data()])
def test_a_column_is_made_of_many_values(values: Any) -> None:
    with pytest.raises(TypeError, match="values: one value per row"):
        Array(values)


IMPORTS = """
import sys
import batchmeta
from batchmeta.calls import cells, indexes
from batchmeta.schema import wire_schemas

class Scalar:
    def __init__(self, held): self.held = held
    def tolist(self): return self.held

cells([{"reward": Scalar(0.5), "at": Scalar([1, 2])}], "custom_meta")
indexes(Scalar([3, 4]), "global_indexes")
wire_schemas({"f": {"dtype": "torch.float32", "lengths": Scalar([3])}}, "field_schema")
print(sorted({"numpy", "torch"} & set(sys.modules)))
"""


def test_neither_numpy_nor_torch_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
