"""Where the adapter meets TransferQueue: its methods, each made to pick the plane by the type of its controller's info.

Methods are replaced on the classes themselves, so references made before are met too. Who is on TransferQueue's own
plane runs its own code as before.
"""

import copyreg
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import wraps
from inspect import iscoroutinefunction, signature
from typing import Any

import transfer_queue
from ray import cloudpickle
from transfer_queue import client as their_client
from transfer_queue import controller as their_controller
from transfer_queue import interface as their_interface
from transfer_queue.metadata import BatchMeta as TheirBatch
from transfer_queue.storage.managers.base import StorageManager

from ..errors import ConnectionLost, Problem, UnreadableReply
from ..retries import Retries
from . import checkpoints, clearing, fetching, loader, reading, statuses, writing
from .batches import SLOTS
from .closing import end
from .errors import AdapterError, ServiceFailed, UnsupportedTransferQueue
from .intents import KvClear, KvGet, KvPut, intending
from .server_info import HttpServerInfo, info_of, service_of
from .settings import Settings
from .stand_in import Controllers, check

OLDEST, NEWEST = (0, 1, 8), (0, 1, 11)
# Methods of AsyncTransferQueueClient, and ours.
CLIENT: dict[str, Callable[..., Awaitable[Any]]] = {
    "async_get_meta": fetching.get_meta,
    "async_set_custom_meta": writing.set_custom_meta,
    "async_clear_samples": clearing.clear_samples,
    "async_clear_partition": clearing.clear_partition,
    "_get_partition_meta": reading.partition_meta,
    "async_get_consumption_status": statuses.get_consumption_status,
    "async_check_consumption_status": statuses.check_consumption_status,
    "async_get_production_status": statuses.get_production_status,
    "async_check_production_status": statuses.check_production_status,
    "async_reset_consumption": statuses.reset_consumption,
    "async_get_partition_list": statuses.get_partition_list,
    "async_kv_retrieve_meta": reading.kv_retrieve_meta,
    "async_kv_retrieve_keys": reading.kv_retrieve_keys,
    "async_kv_list": statuses.kv_list,
}
# Those that TransferQueue has since 0.1.9.
CHECKPOINTS: dict[str, Callable[..., Awaitable[Any]]] = {
    "async_save_controller_checkpoint": checkpoints.save,
    "async_load_controller_checkpoint": checkpoints.load,
}
NAMES = (
    (their_client, ("AsyncTransferQueueClient", "TransferQueueClient")),
    (their_client.AsyncTransferQueueClient, ("__init__", "async_put", "close", *CLIENT)),
    (StorageManager, ("_connect_to_controller", "notify_data_update")),
    (their_interface, ("TransferQueueController", "init", "kv_list", "kv_batch_get_by_meta")),
)
_ARMED = "_batchmeta_armed"


def arm(any_version: bool = False) -> None:
    """Replace TransferQueue's methods in this process, once. UnsupportedTransferQueue where it is not known."""
    classes = their_client.AsyncTransferQueueClient
    if _ARMED in vars(classes):
        return
    check_version(any_version)
    _arm_client(classes)
    _arm_manager()
    _arm_interface()
    setattr(classes, _ARMED, True)


def choose(settings: Settings | AdapterError | None) -> None:
    """What the next first `init` of this process makes: a stand-in for this service, an error, or TransferQueue's."""
    their_interface.TransferQueueController.settings = settings


def check_version(any_version: bool) -> None:
    """UnsupportedTransferQueue, one line, for a version that is not known or lacks what the adapter replaces."""
    version = transfer_queue.__version__
    if not any_version and not OLDEST <= _numbers(version) <= NEWEST:
        raise UnsupportedTransferQueue(
            f"TransferQueue {version} is not known: batchmeta takes 0.1.8 to 0.1.11. Install one of these, unset "
            "BATCHMETA_URL, or set BATCHMETA_ANY_TRANSFERQUEUE=1 to try"
        )
    missing = [f"{owner.__name__}.{name}" for owner, names in NAMES for name in names if not hasattr(owner, name)]
    if tuple(TheirBatch.__slots__) != SLOTS:
        missing.append(f"BatchMeta's members {SLOTS}")
    if missing:
        raise UnsupportedTransferQueue(f"TransferQueue {version} lacks {', '.join(missing)}, which batchmeta replaces")


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split(".")
    return tuple(map(int, parts)) if all(part.isdigit() for part in parts) else (10**9,)


def _arm_client(kind: Any) -> None:
    for name, ours in (*CLIENT.items(), *CHECKPOINTS.items()):
        if hasattr(kind, name):
            setattr(kind, name, _picking(getattr(kind, name), ours))
    kind.async_put = _surrounded(kind.async_put)
    kind.__init__ = _opened(kind.__init__)
    kind.close = _closed(kind.close)
    their_client.TransferQueueClient.close = _closed(their_client.TransferQueueClient.close)


def _arm_manager() -> None:
    StorageManager.notify_data_update = _picking(StorageManager.notify_data_update, writing.notify_data_update)
    StorageManager._connect_to_controller = _checked(StorageManager._connect_to_controller)  # noqa: SLF001  # the seam


def _arm_interface() -> None:
    found = their_interface.TransferQueueController
    controllers = found if isinstance(found, Controllers) else Controllers(found)
    their_interface.TransferQueueController = controllers
    their_controller.TransferQueueController = controllers
    for name, intent in INTENTS.items():
        replaced = _intended(getattr(their_interface, name), intent)
        for module in (their_interface, transfer_queue):
            setattr(module, name, replaced)


def _picking(theirs: Callable[..., Any], ours: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
    @wraps(theirs)
    async def method(self: Any, *arguments: Any, **named: Any) -> Any:
        service = service_of(self)
        if service is None:
            return await theirs(self, *arguments, **named)
        named.pop("socket", None)  # what their decorator fills in
        with _told(service.settings.url):
            return await ours(self, service, *arguments, **named)

    return method


def _surrounded(theirs: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(theirs)
    async def async_put(self: Any, *arguments: Any, **named: Any) -> Any:
        service = service_of(self)
        if service is None:
            return await theirs(self, *arguments, **named)
        with _told(service.settings.url):
            return await writing.put(theirs, self, service, *arguments, **named)

    return async_put


def _opened(theirs: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(theirs)
    def __init__(self: Any, client_id: str, controller_info: Any, *arguments: Any, **named: Any) -> None:  # noqa: N807  # it is one
        if isinstance(controller_info, HttpServerInfo):
            controller_info = controller_info.opened()
        theirs(self, client_id, controller_info, *arguments, **named)

    return __init__


def _closed(theirs: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(theirs)
    def close(self: Any) -> None:
        try:
            end(self)
        finally:
            theirs(self)

    return close


def _checked(theirs: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(theirs)
    def _connect_to_controller(self: Any) -> None:
        info = info_of(self)
        if info is None:
            theirs(self)
        else:
            check(info.settings, Retries(within_s=info.settings.patience_s))

    return _connect_to_controller


def _intended(theirs: Callable[..., Any], intent_of: Callable[[Mapping[str, Any]], Any]) -> Callable[..., Any]:
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


def revive(url: str, settings: Mapping[str, Any], sampler: Mapping[str, Any], is_polling: bool) -> HttpServerInfo:
    """Unpickle an info, which arms the worker."""
    found = Settings(url=url, **settings)
    arm(found.any_version)
    return HttpServerInfo(found, sampler, is_polling)


def _reduced(info: HttpServerInfo) -> tuple[Any, ...]:
    """Plain values alone, since a worker without batchmeta must get as far as `load`."""
    settings = asdict(info.settings)
    return loader.load, ((settings.pop("url"), settings, info.sampler, info.is_polling),)


copyreg.pickle(HttpServerInfo, _reduced)
cloudpickle.register_pickle_by_value(loader)
