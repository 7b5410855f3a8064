"""An event loop in a daemon thread: code that waits can use code that awaits, also where a loop runs already."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from .errors import BatchmetaError, ConnectionLost
from .forks import keep_in_children

LOOK_UP_S = 0.5
T = TypeVar("T")
Work = Coroutine[Any, Any, T]


class LoopThread:
    """One loop and its thread, of one process: threads do not survive a fork. Both are made at the first `run`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, work: Work[T]) -> T:
        """Wait for the result. An interrupt of the wait cancels the work; ConnectionLost if `close` came between."""
        # Scheduled under the lock, so that `close` sees all that came before it and cancels it.
        with self._lock:
            future = asyncio.run_coroutine_threadsafe(work, self._started())
        try:
            while not _is_over(future):
                pass
            return future.result()
        except concurrent.futures.CancelledError:
            raise ConnectionLost("the client was closed meanwhile") from None
        except BatchmetaError as error:
            raise error.with_traceback(None) from error.__cause__  # it says what is wrong; the steps in between do not
        except BaseException:
            future.cancel()
            raise

    def close(self, last: Callable[[], Work[None]]) -> None:
        """Cancel what runs, do this last, end the loop and its thread. Nothing if none was started."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(_end(last), loop)
        # The garbage collector may have called this, and may have done so in the loop's own thread.
        if thread is not threading.current_thread():
            thread.join()

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_serve, args=(self._loop,), name="batchmeta", daemon=True)
            self._thread.start()
            keep_in_children(self)
        return self._loop


def _is_over(future: "concurrent.futures.Future[Any]") -> bool:
    """Wait, but look up now and then: a signal that comes when a wait is just about to begin does not end it."""
    try:
        future.exception(LOOK_UP_S)
    except TimeoutError:  # what the work itself raises is returned here
        return False
    return True


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


async def _end(last: Callable[[], Work[None]]) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    try:
        await last()
    finally:
        asyncio.get_running_loop().stop()
