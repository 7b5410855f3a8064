"""Sets what malloc keeps and gives back, and when the cyclic collector runs. Figures: decision 0007."""

import ctypes
import gc
import threading
from collections.abc import Callable
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
KEPT_BYTES = 32 * 2**20
MUCH_BYTES = 8 * 2**20
LOOK_S = 2.0


def keep_large_blocks() -> bool:
    """Let malloc reuse blocks of the size of a reply instead of mapping and clearing them anew each time.

    False where the C library is not glibc.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, KEPT_BYTES) and mallopt(_TRIM_THRESHOLD, 2 * KEPT_BYTES))


class _Info(ctypes.Structure):
    """`struct mallinfo2` of malloc.h."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    )


@cache
def _glibc() -> ctypes.CDLL | None:
    """None where the C library is another, or older than 2.33."""
    try:
        library = ctypes.CDLL(None)
        library.mallinfo2.restype = _Info
        library.malloc_trim.argtypes = [ctypes.c_size_t]
    except (OSError, AttributeError):
        return None
    return library


class Returning:
    """Gives the system back what was freed, in a thread of its own that looks every few seconds, so that no call waits.

    malloc gives back only what is free at the end of its heap; what a deleted partition leaves lies between what is
    still held. Steady work frees as much as it takes, and is left alone: its blocks are about to be used again.
    """

    def __init__(self, changed: Callable[[], object]) -> None:
        """`changed`: something that is another whenever there was a change since."""
        self._changed = changed
        self._seen: object = None
        self._left = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memory", daemon=True)

    def start(self) -> None:
        """No thread where the C library gives no account."""
        if (library := _glibc()) is not None:
            self._left = library.mallinfo2().fordblks
            self._thread.start()

    def end(self) -> None:
        """Waits for a look that has begun."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(LOOK_S):
            changed = self._changed()
            if changed != self._seen:
                self._seen = changed
                self.look()

    def look(self) -> bool:
        """Give back, if much more is free than was left the last time; whether it was."""
        library = _glibc()
        if library is None:
            return False
        free: int = library.mallinfo2().fordblks
        is_much = free > self._left + MUCH_BYTES
        if is_much:
            library.malloc_trim(0)
        self._left = free if is_much else min(self._left, free)
        return is_much


def collect_rarely() -> None:
    """State is arrays, bytes and ints, which the collector does not walk; requests make few cycles."""
    gc.set_threshold(50_000, 20, 100)


def freeze() -> None:
    """What is there now, mostly modules, stays: the collector need not walk it again."""
    gc.collect()
    gc.freeze()
