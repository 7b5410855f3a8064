"""The operator's own samplers: named at start, never by a caller, held to the contract at every use."""

from collections.abc import Iterator

import pytest

from core.samplers.custom import flaw

from ..conftest import ServerProcess, refused_start
from .service import Api, refused
from .strange_samplers import Every

MODULE = "tests.app.strange_samplers"


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    process = ServerProcess("--journal", "memory:", "--sampler", f"every={MODULE}:Every")
    yield process
    assert process.stop() == 0


@pytest.fixture
def own(server: ServerProcess) -> Iterator[Api]:
    api = Api(server.url)
    with api.http:
        yield api


def broke(own: Api, **more: object) -> None:
    """The claim of one that breaks is a 500; its connection is not used again, and the reply says so."""
    body = {"fields": ["n"], "batch_size": 2, "min_batch_size": 1, **more}
    reply = own.send("POST", "tasks/t/claims", body)
    refused(reply, 500, "internal")
    assert reply.headers["connection"] == "close"


def every(**more: object) -> dict[str, object]:
    return {"sampler": {"name": "every", **more}}


def test_it_is_used_by_its_name_with_arguments_of_its_own(own: Api) -> None:
    own.produce(list("abcdef"), "n")
    assert own.claim("n", size=2, **every()).json()["batch"]["keys"] == ["a", "c"]
    assert own.claim("n", size=2, **every(n=3)).json()["batch"]["keys"] == ["b", "f"]


def test_its_arguments_are_checked_by_its_members(own: Api) -> None:
    refused(own.claim("n", **every(n="2")), 422, "invalid-request", "body.sampler.n", "every")
    refused(own.claim("n", **every(m=2)), 422, "invalid-request", "body.sampler", "m")
    refused(own.claim("n", sampler={"name": f"{MODULE}:Every"}), 422, "invalid-request", "no sampler", "every")


def test_what_it_never_gives_of_a_sealed_partition_ends_its_callers(own: Api) -> None:
    own.produce(list("abcd"), "n")
    own.ok("POST", "seal")
    assert own.claim("n", size=8, wait_s=60, **every(keeps=2)).json()["batch"]["keys"] == ["c"]
    assert own.claim("n", size=8, wait_s=60, **every(keeps=2)).json()["batch"]["keys"] == ["d"]
    body = own.claim("n", size=8, wait_s=60, **every(keeps=2)).json()
    assert (body["claim"], body["done"], body["stranded"]) == (None, True, 2)


@pytest.mark.parametrize("breaks", ["raises", "twice", "not-there", "too-many", "no-ints", "offers"])
def test_one_that_breaks_its_contract_is_an_error_for_its_caller_alone(own: Api, breaks: str) -> None:
    own.produce(list("abc"), "n")
    before = own.dump()
    broke(own, **every(breaks=breaks))
    assert own.dump() == before
    assert own.claim("n", size=2, **every()).json()["batch"]["keys"] == ["a", "c"]


def test_one_that_breaks_while_its_caller_waits_is_an_error_for_its_caller_alone(own: Api) -> None:
    reply = own.claim("n", size=1, wait_s=0.2, **every(breaks="raises")).json()
    assert reply["claim"] is None
    own.produce(["a"], "n")
    broke(own, wait_s=30, **every(breaks="offers"))
    assert own.claim("n", size=1, wait_s=30, **every()).json()["batch"]["keys"] == ["a"]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("lifo=m:K", ["lifo", "already"]),
        ("mine=nobody.there:K", ["nobody", "ModuleNotFoundError"]),
        (f"mine={MODULE}:Nobody", ["AttributeError", "Nobody"]),
        (f"mine={MODULE}:NO_CLASS", ["msgspec.Struct"]),
        (f"mine={MODULE}:NoStruct", ["msgspec.Struct"]),
        (f"mine={MODULE}:Loose", ["frozen=True"]),
        (f"mine={MODULE}:NoTake", ["no method take"]),
        (f"mine={MODULE}:OtherTake", ["no method take"]),
        ("mine", ["name=package.module:Class"]),
    ],
)
def test_a_bad_one_stops_the_start_with_one_line_and_status_2(said: str, words: list[str]) -> None:
    status, (line,) = refused_start("--journal", "memory:", "--sampler", said)
    assert status == 2
    assert [word for word in words if word not in line] == []


def test_a_good_one_has_no_flaw() -> None:
    assert flaw(Every) is None
