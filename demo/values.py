"""The stored form of a value: a CRC-32 of all that follows, a JSON header of one line (dtype, shape), its bytes.

The storage class of a cell is its backend meta, as openYuanrong writes it: "1" tensor, "2" general value.
"""

import json
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Json: TypeAlias = str | int | float | bool | list[Any] | dict[str, Any] | None
Value: TypeAlias = NDArray[Any] | Json
# By field, the value of one sample or of several: which of the two kinds it is, the reader of a field knows.
Row: TypeAlias = dict[str, Any]
Columns: TypeAlias = dict[str, list[Any]]

TENSOR_CLASS = "1"
GENERAL_CLASS = "2"
CRC_BYTES = 4


class DamagedValue(ValueError):
    """The bytes that came back are not the ones that were put."""


def storage_class(value: Value) -> str:
    """The backend meta of the cell that holds `value`."""
    return TENSOR_CLASS if isinstance(value, np.ndarray) else GENERAL_CLASS


def pack(value: Value) -> bytes:
    """The bytes to store; never empty, which openYuanrong would refuse."""
    if isinstance(value, np.ndarray):
        header = json.dumps({"dtype": value.dtype.name, "shape": list(value.shape)}).encode()
        rest = header + b"\n" + value.tobytes()
    else:
        rest = b"{}\n" + json.dumps(value).encode()
    return crc32(rest).to_bytes(CRC_BYTES, "big") + rest


def unpack(blob: bytes, stored_as: str) -> Value:
    """The value in `blob`, which a cell of class `stored_as` describes. Raises DamagedValue."""
    rest = memoryview(blob)[CRC_BYTES:]
    if not rest or crc32(rest) != int.from_bytes(blob[:CRC_BYTES], "big"):
        raise DamagedValue(f"{len(blob)} bytes do not have the checksum that stands before them")
    end = blob.index(b"\n", CRC_BYTES)
    header, body = json.loads(blob[CRC_BYTES:end]), blob[end + 1 :]
    if ("dtype" in header) != (stored_as == TENSOR_CLASS):
        raise DamagedValue(f"backend meta says class {stored_as!r}, the header says {header}")
    if stored_as == GENERAL_CLASS:
        general: Json = json.loads(body)
        return general
    return np.frombuffer(body, np.dtype(header["dtype"])).reshape(header["shape"])
