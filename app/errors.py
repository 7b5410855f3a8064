"""Refusals to problem+json (RFC 9457). The table of codes is the wire's; what has no code here is a bug: 500."""

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


class EdgeRefused(Exception):
    """Refused before the engine saw it: `code` of the contract, what to change, and where. `reason`: of a not-ready."""

    def __init__(
        self, code: str, detail: str, errors: Sequence[tuple[str, str]] = (), reason: str | None = None
    ) -> None:
        super().__init__(detail)
        self.code, self.detail, self.errors, self.reason = code, detail, errors, reason

    @classmethod
    def not_ready(cls, reason: str) -> "EdgeRefused":
        """The journal is being replayed, or the service stops."""
        return cls("not-ready", f"the service is not ready ({reason}): send the call again", reason=reason)


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
    """A refusal of the engine. Names the first 20 offenders; every cleared or lost one, which a caller must drop."""
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
    )


def _errors(errors: Sequence[tuple[str, str]]) -> object:
    return [ProblemError(loc=loc, msg=msg) for loc, msg in errors[:NAMED]] or UNSET


def request_id_of(request: Request) -> str:
    """The id the guard gave this request."""
    return str(request.scope["state"]["request_id"])


def edge_refused(error: EdgeRefused, request_id: str) -> Response:
    """A refusal of the edge's own."""
    reason = UNSET if error.reason is None else error.reason
    return problem(error.code, error.detail, request_id, errors=_errors(error.errors), reason=reason)


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
    detail = "a bug in the service: report it with this request_id"
    return problem("internal", detail, request_id_of(request), {"Connection": "close"})
