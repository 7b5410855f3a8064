"""Where the adapter meets TransferQueue: its methods, each made to pick the plane by the type of its controller's info.

Methods are replaced on the classes themselves, so references made before are met too. Who is on TransferQueue's own
plane runs its own code as before.
"""

import copyreg
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any

import transfer_queue
from ray import cloudpickle
from transfer_queue import client as their_client
from transfer_queue import controller as their_controller
from transfer_queue import interface as their_interface
from transfer_queue.metadata import BatchMeta as TheirBatch
from transfer_queue.storage.managers.base import StorageManager

from . import checkpoints, clearing, fetching, loader, reading, statuses, writing
from .batches import SLOTS
from .errors import AdapterError, UnsupportedTransferQueue
from .replaced import INTENTS, checked, closed, intended, opened, picking, surrounded
from .server_info import HttpServerInfo
from .settings import Settings
from .stand_in import Controllers

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
            setattr(kind, name, picking(getattr(kind, name), ours))
    kind.async_put = surrounded(kind.async_put)
    kind.__init__ = opened(kind.__init__)
    kind.close = closed(kind.close)
    their_client.TransferQueueClient.close = closed(their_client.TransferQueueClient.close)


def _arm_manager() -> None:
    StorageManager.notify_data_update = picking(StorageManager.notify_data_update, writing.notify_data_update)
    StorageManager._connect_to_controller = checked(StorageManager._connect_to_controller)  # noqa: SLF001  # the seam


def _arm_interface() -> None:
    found = their_interface.TransferQueueController
    controllers = found if isinstance(found, Controllers) else Controllers(found)
    their_interface.TransferQueueController = controllers
    their_controller.TransferQueueController = controllers
    for name, intent in INTENTS.items():
        replaced = intended(getattr(their_interface, name), intent)
        for module in (their_interface, transfer_queue):
            setattr(module, name, replaced)


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
