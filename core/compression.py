"""Bytes made smaller by zstd, which Python has of its own from 3.14 on; before that its backport is the same."""

import sys
from collections.abc import Callable
from typing import Final

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdCompressor, decompress
else:
    from backports.zstd import ZstdCompressor, decompress

LEVEL: Final = 1
MAGIC: Final = b"\x28\xb5\x2f\xfd"

Pack = Callable[[bytes], bytes]


def packer() -> Pack:
    """A function that makes bytes a zstd frame, in one thread at a time: a compressor kept costs half of a new one."""
    compressor = ZstdCompressor(level=LEVEL)
    return lambda data: compressor.compress(data, ZstdCompressor.FLUSH_FRAME)


def unpack(frames: bytes) -> bytes:
    """What one frame or several in a row were made of. Raises ValueError for other bytes."""
    try:
        return decompress(frames)
    except Exception as error:
        raise ValueError(f"these bytes are not compressed as they should be: {error}") from error
