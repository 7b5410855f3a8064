"""Turns refusals into problem+json (RFC 9457), and names those that only the edge makes.

All stand under `core.errors.Refused`. The wire's table gives each code its status and title. Any other exception is a
bug: 500.
"""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import UNSET
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from batchmeta.wire import PROBLEMS
from batchmeta.wire.replies import Problem, ProblemError
from core.errors import LeaseLost, Refused, SampleCleared, SampleClearing

MEDIA_TYPE = "application/problem+json"
NAMED = 20
RETRY_AFTER_S = "1"
_BY_STATUS = {404: "route-not-found", 405: "method-not-allowed"}


class EdgeRefused(Refused):
    """Refused at the edge, for what only HTTP knows of; the engine never saw the call."""


class BadRequest(EdgeRefused):
    """What came is no HTTP request that can be answered: send it as HTTP/1.1 says."""

    code = "bad-request"


class Forbidden(EdgeRefused):
    """A name or a page of another origin: call the service by a name it goes by, from a worker."""

    code = "forbidden"


class NotAcceptable(EdgeRefused):
    """Only JSON is offered: send Accept: application/json, or no Accept."""

    code = "not-acceptable"


class BodyTooLarge(EdgeRefused):
    """The body is larger than limits.max_body_bytes of GET /v1/server: send fewer rows at a time."""

    code = "body-too-large"


class UnsupportedMediaType(EdgeRefused):
    """A body is JSON, as it is: send Content-Type: application/json, and no encoding."""

    code = "unsupported-media-type"


def problem(
    code: str,
    detail: str,
    request_id: str,
    headers: Mapping[str, str] | None = None,
    *,
    is_final: bool = False,
    **more: object,
) -> Response:
    """The reply for one code; `is_final`: not to be sent again. `more` are the optional members of Problem."""
    kind = PROBLEMS[code]
    is_retryable = kind.retryable and not is_final
    body = Problem(
        type=f"urn:batchmeta:problem:{code}",
        title=kind.title,
        status=kind.status,
        detail=detail,
        code=code,
        retryable=is_retryable,
        request_id=request_id,
        **more,  # type: ignore[arg-type]
    )
    extra = {"Retry-After": RETRY_AFTER_S} if is_retryable and kind.status in (429, 503) else {}
    return Response(
        msgspec.json.encode(body), kind.status, {"Cache-Control": "no-store", **extra, **(headers or {})}, MEDIA_TYPE
    )


def refused(error: Refused, request_id: str) -> Response:
    """The reply to a refusal. Names the first 20 offenders; every cleared or lost one, which a caller must drop."""
    most = None if isinstance(error, SampleCleared | SampleClearing | LeaseLost) else NAMED
    return problem(
        error.code,
        error.detail,
        request_id,
        is_final=error.is_final,
        errors=_errors(error.errors),
        global_indexes=list(error.global_indexes[:most]) or UNSET,
        keys=list(error.keys[:most]) or UNSET,
        fields=list(error.fields[:most]) or UNSET,
        reason=UNSET if error.reason is None else error.reason,
    )


def _errors(errors: Sequence[tuple[str, str]]) -> object:
    return [ProblemError(loc=loc, msg=msg) for loc, msg in errors[:NAMED]] or UNSET


def request_id_of(request: Request) -> str:
    """The id the guard gave this request."""
    return str(request.scope["state"]["request_id"])


def on_http_exception(request: Request, error: HTTPException) -> Response:
    """The router's own: no such route, method not allowed."""
    code = _BY_STATUS.get(error.status_code, "bad-request")
    detail = {
        "route-not-found": f"there is no route {request.url.path}: see /docs",
        "method-not-allowed": f"{request.method} is not allowed on {request.url.path}: see /docs",
    }.get(code, str(error.detail))
    headers = dict(error.headers or {})
    if code == "method-not-allowed":
        headers["Allow"] = request.app.state.methods_of(request.scope["path"]) or "GET, HEAD"  # of a page or asset
    return problem(code, detail, request_id_of(request), headers)


async def on_bug(request: Request, _: Exception) -> Response:
    """Handler of everything else: the traceback is in the log, under this request's id. The server then closes."""
    return bug(request_id_of(request))


def bug(request_id: str) -> Response:
    """The reply to a call that a bug broke; the connection ends with it."""
    detail = "a bug in the service: report it with this request_id"
    return problem("internal", detail, request_id, {"Connection": "close"})
