"""`finish_clears`, for the client that `transfer_queue.init` made in this process."""

import asyncio

from transfer_queue import interface as their_interface

from .clearing import finish_job, manager_of
from .server_info import service_of


def finish_clears() -> int:
    """How many pending clears of the job were finished."""
    client = their_interface._TQ_CLIENT  # noqa: SLF001  # what its get_client returns, or asserts
    service = None if client is None else service_of(client)
    if service is None:
        raise RuntimeError("there is no client on batchmeta in this process: call transfer_queue.init() first")
    work = finish_job(service, manager_of(client))
    return asyncio.run_coroutine_threadsafe(work, client._loop).result()  # noqa: SLF001  # the loop of its sync calls
