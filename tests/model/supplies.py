"""Compares the supplies for claims with their definition: ready rows and whole groups, found by a scan of the model.

A window of two groups may stand in the index until it is taken; nothing else may be there too much or too little.
"""

import copy

import numpy as np

from core.engine import Engine
from core.state.partition import Partition
from core.state.supply.group_index import GroupIndex, _mixed
from core.state.supply.supplies import Supplies
from core.state.supply.supply import Supply
from core.state.where import Where
from tests.model.model import Plain
from tests.model.samplers import Condition, passes


def check_supplies(engine: Engine, plain: Plain) -> None:
    """Every supply of every partition: what it would be once somebody asks. Looked at in a copy."""
    for name, partition in engine.partitions.items():
        begun = partition.supplies.kept
        for kept in list(begun.supplies.values()) if begun else ():
            supply, held = copy.deepcopy(kept), plain.state.partitions[name]
            supply.refresh(partition)
            takeable = held.takeable(supply.task, supply.fields)
            where = supply.where
            if where is not None:
                takeable = [index for index in takeable if passes(held.rows[index], told(where))]
            fresh = Supplies().of(partition, supply.task, supply.fields, where)
            check_ready(takeable, partition, supply, fresh)
            for by, n in list(supply._groups):
                check_groups(held.whole_groups(takeable, n, by), partition, supply.by_group(by, n, partition), fresh)


def told(where: Where) -> list[Condition]:
    """As a caller says it."""
    out = []
    for condition in where.conditions:
        values = [value for _, value in condition.operands]
        value = values if condition.op == "in" else values[0]
        out.append({"path": ".".join(condition.path), "op": condition.op, "value": value})
    return out


def check_ready(takeable: list[int], partition: Partition, supply: Supply, fresh: Supply) -> None:
    ready = supply.ready
    rows = np.flatnonzero(ready.bits)
    assert partition.rows.global_index[rows].tolist() == takeable
    assert ready.count == len(rows)
    assert ready.blocks.tolist() == ready.bits.reshape(len(ready.blocks), -1).sum(1).tolist()
    assert (fresh.ready.lowest(ready.count) == rows).all()


def check_groups(meant: list[list[int]], partition: Partition, index: GroupIndex, fresh: Supply) -> None:
    again = fresh.by_group(index.by, index.n, partition)
    kept, found = groups_of(partition, index), groups_of(partition, again)
    assert index.whole.count == len(kept)
    assert {tuple(group) for group in meant} <= kept <= found
    mixed = {group for group in found if is_mixed(partition, group)}
    assert found - mixed == {tuple(group) for group in meant}


def groups_of(partition: Partition, index: GroupIndex) -> set[tuple[int, ...]]:
    """The groups of an index as global indexes."""
    members = index._members(partition, np.flatnonzero(index.whole.bits))
    return {tuple(group) for group in partition.rows.global_index[members].tolist()}


def is_mixed(partition: Partition, group: tuple[int, ...]) -> bool:
    rows = partition.rows.locate(np.array([group], np.int64))
    return bool(_mixed(partition, rows)[0])
