"""TransferQueue's users on batchmeta: `install(url)` before `transfer_queue.init(conf)`, and nothing else changes.

`install` is needed only in the process that first calls `init`. The others learn of the service from the config that
they get, so batchmeta must be installed where they run. verl needs no call: `BATCHMETA_URL` in the environment is
enough (entry point `verl.plugins`). Nothing here imports TransferQueue, Ray or torch before it is used.
"""

import os

from .errors import (
    AdapterError,
    BadCall,
    BadSetting,
    FieldConflict,
    LateWrite,
    NoService,
    NotEnoughData,
    ServiceFailed,
    UnsupportedSampler,
    UnsupportedTransferQueue,
)
from .settings import settings_from

__all__ = [
    "AdapterError",
    "BadCall",
    "BadSetting",
    "FieldConflict",
    "LateWrite",
    "NoService",
    "NotEnoughData",
    "ServiceFailed",
    "UnsupportedSampler",
    "UnsupportedTransferQueue",
    "finish_clears",
    "install",
    "uninstall",
]


def install(
    url: str | None = None,
    *,
    job: str | None = None,
    timeout_s: float = 30.0,
    patience_s: float = 60.0,
) -> None:
    """From now on `transfer_queue.init` in this process uses the service at `url`, or at `BATCHMETA_URL`.

    `job`: a name for the job's partitions where several jobs share the service, or `BATCHMETA_JOB`. `timeout_s`:
    seconds without progress after which a call is lost. `patience_s`: for so long a lost call is sent again.
    Raises BadSetting, UnsupportedTransferQueue. Whether the service answers is seen by `init` (NoService).
    """
    settings = settings_from(os.environ, url, job, timeout_s, patience_s)
    from .seam import arm, choose

    arm(settings.any_version)
    choose(settings)


def uninstall() -> None:
    """From now on `transfer_queue.init` makes TransferQueue's own controller. Clients that exist stay as they are."""
    from .seam import choose

    choose(None)


def finish_clears() -> int:
    """Finish every clear of the job whose bytes could not be deleted before, also those of processes that are gone.

    The number of clears that were finished. RuntimeError before `transfer_queue.init`.
    """
    from .finishing import finish_clears as finished

    return finished()
