"""The stored form of a value: a safetensors file of one tensor, with a CRC-32 in its metadata.

The storage class of a cell is its backend meta, as openYuanrong writes it: "1" tensor, "2" general value. A general
value is JSON, and so a tensor of bytes.
"""

import json
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

Json: TypeAlias = str | int | float | bool | list[Any] | dict[str, Any] | None
Value: TypeAlias = NDArray[Any] | Json
# By field, the value of one sample or of several: which of the two kinds it is, the reader of a field knows.
Row: TypeAlias = dict[str, Any]
Columns: TypeAlias = dict[str, list[Any]]

TENSOR_CLASS = "1"
GENERAL_CLASS = "2"
# How the tensor is called in the file, by class.
NAMES = {TENSOR_CLASS: "tensor", GENERAL_CLASS: "json"}
LENGTH_BYTES = 8


class DamagedValue(ValueError):
    """The bytes that came back are not the ones that were put."""


def storage_class(value: Value) -> str:
    """The backend meta of the cell that holds `value`."""
    return TENSOR_CLASS if isinstance(value, np.ndarray) else GENERAL_CLASS


def pack(value: Value) -> bytes:
    """The bytes to store; never empty, which openYuanrong would refuse."""
    array = _array(value)
    return save({NAMES[storage_class(value)]: array}, {"crc32": _checksum(array)})


def unpack(blob: bytes, stored_as: str) -> Value:
    """The value in `blob`, which a cell of class `stored_as` describes. Raises DamagedValue."""
    try:
        array = load(blob)[NAMES[stored_as]]
        told = _metadata(blob)["crc32"]
    except (SafetensorError, KeyError, ValueError) as error:
        raise DamagedValue(f"{len(blob)} bytes are no value of class {stored_as!r}: {error}") from error
    if told != _checksum(array):
        raise DamagedValue(f"{len(blob)} bytes do not have the checksum that stands before them")
    if stored_as == GENERAL_CLASS:
        general: Json = json.loads(array.tobytes())
        return general
    return array


def _array(value: Value) -> NDArray[Any]:
    if isinstance(value, np.ndarray):
        return np.require(value, requirements="C")
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


def _checksum(array: NDArray[Any]) -> str:
    described = f"{array.dtype.name} {array.shape} ".encode()
    return str(crc32(array.tobytes(), crc32(described)))


def _metadata(blob: bytes) -> dict[str, str]:
    """safetensors tells the metadata of a file on disk, and of one in memory only the tensors."""
    end = LENGTH_BYTES + int.from_bytes(blob[:LENGTH_BYTES], "little")
    found: dict[str, str] = json.loads(blob[LENGTH_BYTES:end])["__metadata__"]
    return found
