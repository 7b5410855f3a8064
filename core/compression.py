"""Compresses and decompresses bytes with zstd: Python has it from 3.14 on, its backport serves older ones."""

import sys
from collections.abc import Callable
from typing import Final

if sys.version_info >= (3, 14):
    from compression.zstd import CompressionParameter, ZstdCompressor, decompress, get_frame_info
else:
    from backports.zstd import CompressionParameter, ZstdCompressor, decompress, get_frame_info

LEVEL: Final = 1
MAGIC: Final = b"\x28\xb5\x2f\xfd"
HEAD_BYTES: Final = 18  # of a frame, at most

Pack = Callable[[bytes], bytes]


def packer(window: int = 0) -> Pack:
    """A function that makes bytes a zstd frame, in one thread at a time: a compressor kept costs half of a new one.

    `window`: it looks so far back for what is the same, as a power of two; 0: as zstd thinks best.
    """
    options: dict[int, int] = {CompressionParameter.compression_level: LEVEL, CompressionParameter.window_log: window}
    compressor = ZstdCompressor(options=options)

    def pack(data: bytes) -> bytes:
        compressor.set_pledged_input_size(len(data))
        return compressor.compress(data, ZstdCompressor.FLUSH_FRAME)

    return pack


def unpacked_length(head: bytes) -> int:
    """How long that is which `pack` made a frame of; `head`: its first HEAD_BYTES, or all of it."""
    return get_frame_info(head).decompressed_size or 0


def unpack(frames: bytes) -> bytes:
    """What one frame or several in a row were made of. Raises ValueError for other bytes."""
    try:
        return decompress(frames)
    except Exception as error:
        raise ValueError(f"these bytes are not compressed as they should be: {error}") from error
