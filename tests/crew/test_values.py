"""A value comes back as it was, or not at all."""

import numpy as np
import pytest

from crew.values import GENERAL_CLASS, TENSOR_CLASS, DamagedValue, pack, storage_class, unpack


@pytest.mark.parametrize("dtype", ["int64", "float32", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(5,), (0,), (2, 3), ()])
def test_a_tensor_keeps_its_dtype_shape_and_bytes(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)

    back = unpack(pack(array), storage_class(array))

    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())


@pytest.mark.parametrize("value", [None, 2, "uid", [{"role": "user", "content": "a\nb"}], {}])
def test_an_object_comes_back_equal(value: object) -> None:
    assert unpack(pack(value), storage_class(value)) == value


@pytest.mark.parametrize("value", [np.arange(3), {"n": 1}])
def test_any_changed_byte_is_noticed(value: object) -> None:
    blob = pack(value)

    for at in range(len(blob)):
        changed = bytearray(blob)
        changed[at] ^= 0x10
        with pytest.raises(DamagedValue):
            unpack(bytes(changed), storage_class(value))


def test_cut_off_bytes_are_noticed() -> None:
    blob = pack(np.arange(3))

    for length in range(len(blob)):
        with pytest.raises(DamagedValue):
            unpack(blob[:length], TENSOR_CLASS)


def test_a_cell_of_another_class_is_noticed() -> None:
    with pytest.raises(DamagedValue):
        unpack(pack(np.arange(3)), GENERAL_CLASS)
    with pytest.raises(DamagedValue):
        unpack(pack({"n": 1}), TENSOR_CLASS)
