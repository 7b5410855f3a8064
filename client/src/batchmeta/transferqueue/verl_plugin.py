"""The entry point `verl.plugins`: verl imports this module in each of its processes, and calls nothing of it.

So it acts on import: it installs the adapter where `BATCHMETA_URL` is set. verl keeps errors of plugins to itself, so a
failure is logged here, and `transfer_queue.init` raises it: a run never goes to the other plane by accident.
"""

import logging

from . import install
from .errors import AdapterError
from .settings import is_wanted


def plug_in() -> None:
    """Install the adapter where the environment asks for it."""
    if not is_wanted():
        return
    try:
        install()
    except AdapterError as error:
        logging.getLogger("batchmeta.transferqueue").error("%s", error)
        _refuse(error)


def _refuse(error: AdapterError) -> None:
    from transfer_queue import interface

    from .stand_in import Controllers

    refusing = Controllers(interface.TransferQueueController)
    refusing.settings = error
    interface.TransferQueueController = refusing


plug_in()
