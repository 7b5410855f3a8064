"""The rows that flows write: small tensors and objects that are a function of the row's number."""

from collections.abc import Sequence

import torch
from tensordict import TensorDict
from tensordict.tensorclass import NonTensorStack


def tokens(first: int, rows: int, length: int = 3, name: str = "input_ids") -> TensorDict:
    """One int64 field of equal lengths; row i holds the numbers from 10 * (first + i)."""
    values = torch.stack([torch.arange(length) + 10 * (first + row) for row in range(rows)])
    return TensorDict({name: values}, batch_size=rows)


def pair(first: int, rows: int) -> TensorDict:
    """input_ids and attention_mask, as in TransferQueue's first tutorial."""
    data = tokens(first, rows)
    data["attention_mask"] = torch.ones_like(data["input_ids"])
    return data


def ragged(lengths: Sequence[int], name: str = "responses", dtype: torch.dtype = torch.int64) -> TensorDict:
    """One field whose rows have these lengths."""
    rows = [torch.arange(length).to(dtype) + 100 * row for row, length in enumerate(lengths)]
    return TensorDict({name: torch.nested.as_nested_tensor(rows, layout=torch.jagged)}, batch_size=len(lengths))


def kinds(rows: int) -> TensorDict:
    """A field of each kind of value that a job stores: dtypes, numbers, texts, objects."""
    numbers = torch.arange(rows)
    return TensorDict(
        {
            "float": numbers.reshape(rows, 1).float() / 4,
            "half": numbers.reshape(rows, 1).bfloat16() / 4,
            "flag": (numbers % 2 == 0).reshape(rows, 1),
            "matrix": torch.arange(rows * 4, dtype=torch.int32).reshape(rows, 2, 2),
            "text": NonTensorStack(*[f"answer {row}" for row in range(rows)]),
            "messages": NonTensorStack(*[{"role": "user", "turns": [row, None]} for row in range(rows)]),
        },
        batch_size=rows,
    )
