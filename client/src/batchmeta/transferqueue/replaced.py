"""How a method or function of TransferQueue's is replaced: by one that picks the plane, and may call the old one."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from inspect import iscoroutinefunction, signature
from typing import Any

from ..errors import ConnectionLost, Problem, UnreadableReply
from ..retries import Retries
from . import writing
from .closing import end
from .errors import AdapterError, ServiceFailed
from .intents import KvClear, KvGet, KvPut, intending
from .server_info import HttpServerInfo, info_of, service_of
from .stand_in import check


def picking(theirs: Callable[..., Any], ours: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
    """A method of a client or storage manager: ours, where its controller's info is."""

    @wraps(theirs)
    async def method(self: Any, *arguments: Any, **named: Any) -> Any:
        service = service_of(self)
        if service is None:
            return await theirs(self, *arguments, **named)
        named.pop("socket", None)  # what their decorator fills in
        with _told(service.settings.url):
            return await ours(self, service, *arguments, **named)

    return method


def surrounded(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """`async_put`: theirs, with what ours prepares for the report of its data."""

    @wraps(theirs)
    async def async_put(self: Any, *arguments: Any, **named: Any) -> Any:
        service = service_of(self)
        if service is None:
            return await theirs(self, *arguments, **named)
        with _told(service.settings.url):
            return await writing.put(theirs, self, service, *arguments, **named)

    return async_put


def opened(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """`__init__` of a client: each has a service of its own."""

    @wraps(theirs)
    def __init__(self: Any, client_id: str, controller_info: Any, *arguments: Any, **named: Any) -> None:  # noqa: N807  # it is one
        if isinstance(controller_info, HttpServerInfo):
            controller_info = controller_info.opened()
        theirs(self, client_id, controller_info, *arguments, **named)

    return __init__


def closed(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """`close` of a client: what the adapter opened is closed first."""

    @wraps(theirs)
    def close(self: Any) -> None:
        try:
            end(self)
        finally:
            theirs(self)

    return close


def checked(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """The handshake of a storage manager: NoService unless the service answers."""

    @wraps(theirs)
    def _connect_to_controller(self: Any) -> None:
        info = info_of(self)
        if info is None:
            theirs(self)
        else:
            check(info.settings, Retries(within_s=info.settings.patience_s))

    return _connect_to_controller


def intended(theirs: Callable[..., Any], intent_of: Callable[[Mapping[str, Any]], Any]) -> Callable[..., Any]:
    """The same function; the calls that it makes see what it is about to do."""
    bound = signature(theirs).bind_partial

    if iscoroutinefunction(theirs):

        @wraps(theirs)
        async def coroutine(*arguments: Any, **named: Any) -> Any:
            with intending(intent_of(bound(*arguments, **named).arguments)):
                return await theirs(*arguments, **named)

        return coroutine

    @wraps(theirs)
    def function(*arguments: Any, **named: Any) -> Any:
        with intending(intent_of(bound(*arguments, **named).arguments)):
            return theirs(*arguments, **named)

    return function


@contextmanager
def _told(url: str) -> Iterator[None]:
    """Errors of the client become RuntimeError too, as TransferQueue's callers expect."""
    try:
        yield
    except AdapterError:
        raise
    except (Problem, ConnectionLost, UnreadableReply) as error:
        raise ServiceFailed(f"{error} (the service at {url})") from error


def _put_intent(given: Mapping[str, Any]) -> KvPut:
    tag = given.get("tag")
    tags = given.get("tags") if tag is None else [tag]
    fields = given.get("fields")
    return KvPut(tags=tags, fields=None if fields is None else list(fields.keys()))


def _get_intent(given: Mapping[str, Any]) -> KvGet:
    fields = given.get("select_fields")
    return KvGet(fields=[fields] if isinstance(fields, str) else fields)


def _clear_intent(given: Mapping[str, Any]) -> KvClear:
    return KvClear()


INTENTS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "kv_put": _put_intent,
    "async_kv_put": _put_intent,
    "kv_batch_put": _put_intent,
    "async_kv_batch_put": _put_intent,
    "kv_batch_get": _get_intent,
    "async_kv_batch_get": _get_intent,
    "kv_clear": _clear_intent,
    "async_kv_clear": _clear_intent,
}
