"""A call in both of its forms, and how the arguments of core are written in a request."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from app.reply import Reply
from batchmeta.wire.requests import Condition as ConditionIn
from core.operations.produce import RowWrite
from core.reading.selectors import Selector
from core.state.cells.json_cells import Column
from core.state.where import Where
from core.state.where import where as checked
from tests.core.world import Schema as SchemaIn
from tests.model.said import Chosen
from tests.model.samplers import Condition

READS = ("batch-meta", "backend-meta", "lookup", "explain")
PAGE = 10_000


@dataclass(frozen=True)
class Call:
    method: str
    path: str
    body: Any
    operation: Callable[..., Any]
    render: Callable[[Any], Reply]
    arguments: tuple[Any, ...]

    @property
    def changes(self) -> bool:
        """Whether a key means anything to it."""
        return self.method == "PATCH" or (self.method != "GET" and not self.path.endswith(READS))


def of(name: str, *parts: str) -> str:
    return "/".join(["/v1/partitions", name, *parts])


def members(**given: Any) -> dict[str, Any]:
    """Those that are given."""
    return {member: value for member, value in given.items() if value is not None}


def column(said: Column | None) -> Any:
    """A column as a request has it."""
    if said is None or isinstance(said, list):
        return None if said is None else [json.loads(cell) for cell in said]
    return {"const": json.loads(said.const)}


def schema(said: SchemaIn) -> dict[str, Any]:
    return members(**msgspec.to_builtins(said))


def rows(write: RowWrite) -> dict[str, Any]:
    return members(
        global_indexes=write.indexes,
        keys=write.keys,
        group_ids=write.group_ids,
        custom_meta=column(write.custom_meta),
        custom_meta_mode=None if write.custom_meta_mode == "merge" else write.custom_meta_mode,
        ttl_s=write.ttl_s,
    )


def selector(chosen: Chosen) -> Selector:
    return Selector(chosen.indexes, chosen.keys, chosen.groups, chosen.prefix)


def selected(chosen: Chosen) -> dict[str, Any]:
    """The selector's member, and `where`."""
    return members(
        global_indexes=chosen.indexes,
        keys=chosen.keys,
        group_ids=chosen.groups,
        key_prefix=chosen.prefix,
        where=chosen.where,
    )


def conditions(where: list[Condition] | None) -> Where | None:
    return checked(msgspec.convert(where, list[ConditionIn] | None), "body.where")
