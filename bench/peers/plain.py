"""TransferQueue's values as plain JSON, so that what two planes answer can be compared value by value.

It runs inside a peer's venv, beside TransferQueue; nothing of ours is imported here.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import torch
from tensordict import TensorDictBase
from tensordict.tensorclass import NonTensorData, NonTensorStack
from transfer_queue.metadata import BatchMeta, KVBatchMeta

Json = Any
Number = Callable[[int], int]


class Plain:
    """Makes values plain. `number` says what stands for a global index: no two services give out the same ones."""

    def __init__(self, number: Number) -> None:
        self._number = number

    def __call__(self, value: object) -> Json:
        """Raises TypeError for a value of a kind that is not known here."""
        for kind, made in KINDS:
            if isinstance(value, kind):
                return made(self, value)
        raise TypeError(f"there is no plain form for {type(value).__name__}")

    def tensor(self, value: torch.Tensor) -> Json:
        """A nested tensor is told row by row; bfloat16 and the like have no JSON of their own."""
        if value.is_nested:
            return {"nested": [self.tensor(row) for row in value.unbind()]}
        kept = value.to(torch.float64) if value.is_floating_point() else value
        return {"dtype": str(value.dtype), "shape": list(value.shape), "values": self(kept.tolist())}

    def mapping(self, value: Mapping[Any, Any]) -> Json:
        """Its keys as text, in order."""
        return {str(key): self(inner) for key, inner in sorted(value.items(), key=lambda item: str(item[0]))}

    def fields(self, value: TensorDictBase) -> Json:
        """A TensorDict, by field."""
        return {"rows": list(value.batch_size), "fields": self.mapping({name: value[name] for name in value.keys()})}  # noqa: SIM118

    def batch(self, value: BatchMeta) -> Json:
        """All that a worker reads of a batch meta."""
        return {
            "rows": [self._number(index) for index in value.global_indexes],
            "partitions": list(value.partition_ids),
            "fields": {name: self._field(value, name) for name in sorted(value.field_names)},
            "production_status": value.production_status.tolist(),
            "is_ready": value.is_ready,
            "custom_meta": self(value.custom_meta),
            "backend_meta": self(value._custom_backend_meta),  # noqa: SLF001  # as its storage managers do
            "extra_info": self(value.extra_info),
        }

    def _field(self, value: BatchMeta, name: str) -> Json:
        is_object = bool(value.field_schema[name]["is_non_tensor"])
        shapes = None if is_object else [list(shape) for shape in value.get_shapes(name)]
        dtypes = None if is_object else sorted({str(dtype) for dtype in value.get_dtypes(name)})
        return {"is_non_tensor": is_object, "dtypes": dtypes, "shapes": shapes}

    def keyed(self, value: KVBatchMeta) -> Json:
        """A KVBatchMeta; the order of its fields says nothing."""
        fields = None if value.fields is None else sorted(value.fields)
        return {"keys": value.keys, "tags": self(value.tags), "partition": value.partition_id, "fields": fields}


def _same(_: Plain, value: Json) -> Json:
    return value


def _whole(_: Plain, value: object) -> Json:
    return int(cast(int, value))


def _text(_: Plain, value: object) -> Json:
    return str(value)


# In this order: a NonTensorStack is a TensorDict too, True an int. JSON has no NaN, so a float is its text.
KINDS: tuple[tuple[Any, Callable[[Plain, Any], Json]], ...] = (
    ((type(None), bool, str), _same),
    ((int, np.integer), _whole),
    ((float, np.floating, torch.dtype), _text),
    (torch.Tensor, Plain.tensor),
    (NonTensorData, lambda plain, value: plain(value.data)),
    (NonTensorStack, lambda plain, value: [plain(each) for each in value.tolist()]),
    (TensorDictBase, Plain.fields),
    (BatchMeta, Plain.batch),
    (KVBatchMeta, Plain.keyed),
    (Mapping, Plain.mapping),
    (np.ndarray, lambda plain, value: plain(value.tolist())),
    ((list, tuple), lambda plain, value: [plain(each) for each in value]),
    ((set, frozenset), lambda plain, value: [plain(each) for each in sorted(value)]),
)
