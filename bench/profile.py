"""The data of every case: rows of the verl-GRPO profile, 28 fields, plain JSON all through, the same in every run.

It is written to a file too, so that the peer loads the same rows.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import numpy as np

from batchmeta.wire.requests import Include
from demo.samples import FIXED_SHAPE, OBJECTS, TENSORS, long_tailed

Backend = Literal["const", "distinct"]
Json = Any

LATER = (
    "log_probs",
    "entropy",
    "old_log_probs",
    "ref_log_prob",
    "values",
    "advantages",
    "returns",
    "token_level_rewards",
    "rollout_is_weights",
)
FIELDS = TENSORS + OBJECTS + LATER
# What a rank of the reference model asks for.
CLAIMED = ("input_ids", "position_ids", "responses", "response_mask")
# What a batch that is compared has in it: all that the peer has too.
PARTS: list[Include] = ["keys", "field_schema", "custom_meta", "backend_meta"]
PROMPT = frozenset({"prompts"})
WHOLE = frozenset({"input_ids", "position_ids"})
FLOATS = frozenset({"rollout_log_probs", "rm_scores", *LATER})
ANSWERS = 8
TENSOR_STORE, GENERAL_STORE = "1", "2"  # openYuanrong's storage classes


@dataclass(frozen=True, slots=True)
class Profile:
    """Rows as columns. Of a field: name, kind, dtype (null for objects), shapes per row (null for objects)."""

    fields: list[dict[str, Json]]
    keys: list[str]
    group_ids: list[str]
    custom_meta: list[dict[str, Json]]
    backend_meta: dict[str, list[Json]]

    def save(self, path: Path) -> Path:
        """Write it as one JSON object; where it is."""
        path.write_text(json.dumps(asdict(self)))
        return path

    def body(self, begin: int, end: int, *, backend: bool = True, meta: bool = True, keyed: bool = True) -> Json:
        """The `produce` request (contract#produce) that writes rows `begin` to `end`, without what is not wanted."""
        rows = slice(begin, end)
        body: Json = {"field_schema": {field["name"]: _schema(field, rows) for field in self.fields}}
        if keyed:
            body |= {"keys": self.keys[rows], "create": True, "group_ids": self.group_ids[rows]}
        if meta:
            body["custom_meta"] = self.custom_meta[rows]
        if backend:
            body["backend_meta"] = {name: _column(cells[rows]) for name, cells in self.backend_meta.items()}
        return body


def _schema(field: dict[str, Json], rows: slice) -> Json:
    if field["kind"] == "object":
        return {"kind": "object"}
    shapes = field["shapes"][rows]
    if field["name"] in FIXED_SHAPE:
        return {"dtype": field["dtype"], "shape": shapes[0]}
    return {"dtype": field["dtype"], "lengths": [shape[0] for shape in shapes]}


def _column(cells: list[Json]) -> Json:
    # As a worker sends it: openYuanrong's class once for all rows, Mooncake's cells one by one.
    return {"const": cells[0]} if isinstance(cells[0], str) else cells


def make(rows: int, backend: Backend = "const", seed: int = 0) -> Profile:
    """`rows` answers, eight to a prompt."""
    rng = np.random.default_rng(seed)
    uids = [str(UUID(bytes=rng.bytes(16), version=4)) for _ in range(0, rows, ANSWERS)]
    prompts = [long_tailed(rng, 50, 2000) for _ in uids]
    pairs = [(prompts[row // ANSWERS], long_tailed(rng, 100, 8000)) for row in range(rows)]
    return Profile(
        fields=[_field(name, pairs) for name in FIELDS],
        keys=[f"{uids[row // ANSWERS]}_0_{row % ANSWERS}" for row in range(rows)],
        group_ids=[uids[row // ANSWERS] for row in range(rows)],
        custom_meta=[custom_meta(prompt, response) for prompt, response in pairs],
        backend_meta=_backend_meta(rows, backend),
    )


def _field(name: str, pairs: list[tuple[int, int]]) -> dict[str, Json]:
    if name in OBJECTS:
        return {"name": name, "kind": "object", "dtype": None, "shapes": None}
    dtype = "uint8" if name in FIXED_SHAPE else "float32" if name in FLOATS else "int64"
    return {"name": name, "kind": "tensor", "dtype": dtype, "shapes": [_shape(name, *pair) for pair in pairs]}


def _shape(name: str, prompt: int, response: int) -> list[int]:
    if name in FIXED_SHAPE:
        return [1]
    if name in PROMPT:
        return [prompt]
    return [prompt + response] if name in WHOLE else [response]


def custom_meta(prompt: int, response: int) -> dict[str, Json]:
    """The seven members of an answer's custom meta."""
    lengths = {"prompt_len": prompt, "response_len": response, "seq_len": prompt + response}
    return {"status": "success", **lengths, "global_steps": 41, "min_global_steps": 40, "max_global_steps": 41}


def _backend_meta(rows: int, backend: Backend) -> dict[str, list[Json]]:
    if backend == "const":
        return {name: [GENERAL_STORE if name in OBJECTS else TENSOR_STORE] * rows for name in FIELDS}
    return {
        name: [{"packed_size": 1000 + row * len(FIELDS) + at} for row in range(rows)] for at, name in enumerate(FIELDS)
    }
