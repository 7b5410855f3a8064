"""Every code of the contract is an exception, and every answer that is no success becomes one."""

import pickle

import httpx
import pytest

import batchmeta
from batchmeta import BatchmetaError, ConnectionLost, Problem, SampleCleared, TooManyWaiting, UnreadableReply, errors
from batchmeta.answers import failure
from batchmeta.calls import Call
from batchmeta.wire import PROBLEMS
from tests.client.service import Scripted, client, ok, problem

CALL = Call("GET", "/v1/partitions/p")


@pytest.mark.parametrize("code", PROBLEMS)
def test_every_code_has_a_class_named_after_it_that_is_exported(code: str) -> None:
    name = "".join(word.capitalize() for word in code.split("-"))
    kind = getattr(batchmeta, name)
    assert name in batchmeta.__all__
    assert errors.BY_CODE[code] is kind
    assert kind.code == code
    assert str(PROBLEMS[code].status) in (kind.__doc__ or "")
    assert type(failure(CALL, problem(code))) is kind


def test_no_class_is_there_without_a_code() -> None:
    assert errors.BY_CODE.keys() == PROBLEMS.keys()


def test_a_problem_says_what_the_service_said() -> None:
    answer = problem(
        "sample-cleared",
        "gone",
        errors=[{"loc": "body.global_indexes[0]", "msg": "cleared"}],
        global_indexes=[4],
        keys=["k"],
        fields=["x"],
    )
    error = failure(CALL, answer)
    assert isinstance(error, SampleCleared)
    assert (error.code, error.status, error.detail, error.retryable) == ("sample-cleared", 410, "gone", False)
    assert (error.request_id, error.global_indexes, error.keys, error.fields) == ("r-1", (4,), ("k",), ("x",))
    assert [(each.loc, each.msg) for each in error.errors] == [("body.global_indexes[0]", "cleared")]
    assert str(error) == "410 sample-cleared: gone; body.global_indexes[0]: cleared (request r-1)"


def test_a_problem_survives_the_way_out_of_a_worker_process() -> None:
    error = failure(CALL, problem("too-many-waiting", headers={"Retry-After": "2"}))
    back = pickle.loads(pickle.dumps(error))
    assert isinstance(back, TooManyWaiting)
    assert str(back) == str(error)
    assert (back.retry_after_s, back.retryable) == (2.0, True)


def test_a_lost_connection_does_too() -> None:
    error = failure(CALL, httpx.Response(502, headers={"Retry-After": "2", "Server": "nginx"}))
    back = pickle.loads(pickle.dumps(error))
    assert isinstance(back, ConnectionLost)
    assert (str(back), back.status, back.retry_after_s) == (str(error), 502, 2.0)


def test_a_code_from_a_later_service_is_a_plain_problem() -> None:
    body = {"type": "t", "title": "t", "status": 409, "detail": "d", "code": "new", "retryable": False}
    error = failure(CALL, httpx.Response(409, json={**body, "request_id": "r"}))
    assert type(error) is Problem
    assert error.code == "new"


@pytest.mark.parametrize("status", [404, 413, 302])
def test_a_refusal_of_someone_else_is_a_plain_problem(status: int) -> None:
    error = failure(CALL, httpx.Response(status, text="<html>proxy</html>", headers={"X-Request-ID": "q"}))
    assert type(error) is Problem
    assert (error.code, error.status, error.retryable, error.request_id) == ("about:blank", status, False, "q")
    assert "<html>proxy" in error.detail


@pytest.mark.asyncio
@pytest.mark.parametrize("body", [{"partition_id": "p"}, [], {"anything": 1}])
async def test_a_success_that_is_not_the_contracts_is_unreadable(body: object) -> None:
    with pytest.raises(UnreadableReply, match="no Partition"):
        await client(Scripted(ok(body))).partition("p")


def test_one_base_catches_them_all_and_a_lost_connection_is_a_connection_error() -> None:
    assert issubclass(Problem, BatchmetaError)
    assert issubclass(UnreadableReply, BatchmetaError)
    assert issubclass(ConnectionLost, BatchmetaError)
    assert issubclass(ConnectionLost, ConnectionError)
