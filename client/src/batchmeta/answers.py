"""Turns a failed call into its exception: an answer that is no success, or no answer at all."""

import ssl
from collections.abc import Iterator

import httpx
import msgspec

from .calls import Call
from .errors import BY_CODE, ConnectionLost, Problem
from .exchange import Answer
from .wire import replies

_problem = msgspec.json.Decoder(replies.Problem)


def failure(call: Call, answer: Answer) -> Problem | ConnectionLost:
    """The service's own problem, or what somebody on the way to it said.

    A code that we do not know gives the base class. With a gateway's 5xx, 408 or 429 the call is lost: nothing tells
    what became of it.
    """
    reply = _problem_in(answer)
    asked = answer.headers.get("Retry-After", "")
    asked_s = float(asked) if asked.isdigit() else None
    if reply is not None:
        return BY_CODE.get(reply.code, Problem)(reply, asked_s)
    if answer.status_code >= 500 or answer.status_code in (408, 429):
        return ConnectionLost(_said_by(call, answer), status=answer.status_code, retry_after_s=asked_s)
    return Problem(_no_problem(answer), asked_s)


def lost(call: Call, base_url: str, error: httpx.RequestError) -> ConnectionLost:
    """No answer came. The text says all that there is to know, so that the error of the transport need not be kept."""
    what, reason = f"{call.method} {call.path}", _reason(error) or type(error).__name__
    if any(isinstance(cause, ssl.SSLError) for cause in _causes(error)):
        return ConnectionLost(f"{what}: no TLS with {base_url} ({reason})")
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        todo = "start the service with scripts/serve, or give base_url"
        return ConnectionLost(f"{what}: nothing answers at {base_url} ({reason}): {todo}")
    return ConnectionLost(f"{what}: {type(error).__name__} {error}".rstrip() + f" ({base_url})")


def _reason(error: BaseException) -> str:
    """What the system says, who is innermost, else the text of the error."""
    said = [cause for cause in _causes(error) if isinstance(cause, OSError) and cause.strerror]
    if any(isinstance(cause, ConnectionRefusedError) for cause in said):
        return "connection refused"
    return said[-1].strerror or "" if said else str(error)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            yield from error.exceptions
        error = error.__cause__ or error.__context__


def _problem_in(answer: Answer) -> replies.Problem | None:
    try:
        return _problem.decode(answer.content)
    except msgspec.DecodeError:
        return None


def _said_by(call: Call, answer: Answer) -> str:
    who = answer.headers.get("Server") or answer.headers.get("Via") or "somebody"
    said = f"{answer.status_code} {answer.reason_phrase}".rstrip()
    return f"{call.method} {call.path}: {said} from {who} on the way to the service: {answer.text[:200]!r}"


def _no_problem(answer: Answer) -> replies.Problem:
    return replies.Problem(
        type="about:blank",
        title=answer.reason_phrase,
        status=answer.status_code,
        detail=f"not an answer of batchmeta: {answer.text[:200]!r}",
        code=Problem.code,
        retryable=False,
        request_id=answer.headers.get("X-Request-ID", ""),
    )
