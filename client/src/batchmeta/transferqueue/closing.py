"""The end of a client of TransferQueue: clears left over are tried once more, and the HTTP connections are closed."""

import asyncio
import logging
from typing import Any

from ..errors import BatchmetaError
from .clearing import finish
from .server_info import HttpServerInfo, info_of

_log = logging.getLogger("batchmeta.transferqueue")
CLOSE_S = 10.0


def end(client: Any) -> None:
    """Close what the client opened, wherever it is called: in its own loop's thread, in another loop, or in none."""
    info = info_of(client)
    if info is None or info.is_closed:
        return
    info.is_closed = True
    work = _ended(info, getattr(client, "storage_manager", None))
    loop, thread = getattr(client, "_loop", None), getattr(client, "_thread", None)
    if thread is not None and thread.is_alive() and loop is not None and loop.is_running():
        _waited(asyncio.run_coroutine_threadsafe(work, loop))
        return
    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
    else:
        info.ending = running.create_task(work)


async def _ended(info: HttpServerInfo, manager: Any) -> None:
    service = info.service
    try:
        async with asyncio.timeout(CLOSE_S / 2):
            if service.unfinished:
                await finish(service, manager, [])
    except (BatchmetaError, TimeoutError) as error:
        _log.warning("clears stay pending: %s (%s)", ", ".join(service.unfinished), error)
    finally:
        await service.close()


def _waited(future: Any) -> None:
    try:
        future.result(CLOSE_S)
    except TimeoutError:
        future.cancel()
        _log.warning("the connections to the service were not closed within %g s", CLOSE_S)
