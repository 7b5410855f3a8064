"""How the process treats its memory: what malloc keeps, when the cyclic collector runs. Figures in decision 0007."""

import ctypes
import gc

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
KEPT_BYTES = 32 * 2**20


def keep_large_blocks() -> bool:
    """Let malloc reuse blocks of the size of a reply instead of mapping and clearing them anew each time.

    False where the C library is not glibc.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, KEPT_BYTES) and mallopt(_TRIM_THRESHOLD, 2 * KEPT_BYTES))


def collect_rarely() -> None:
    """State is arrays, bytes and ints, which the collector does not walk; requests make few cycles."""
    gc.set_threshold(50_000, 20, 100)


def freeze() -> None:
    """What is there now stays, torch's modules above all: the collector need not walk it again."""
    gc.collect()
    gc.freeze()
