"""Compares the supplies for claims with their definition: ready rows and whole groups, found by a scan of the model.

A window of two groups may stand in the index until it is taken; nothing else may be there too much or too little.
"""

import copy

import numpy as np

from core.engine import Engine
from core.state.partition import Partition
from core.state.supply.supply import GroupIndex, Supply
from core.state.where import Where
from tests.model.model import Plain
from tests.model.samplers import Condition, passes


def check_supplies(engine: Engine, plain: Plain) -> None:
    """Every supply of every partition."""
    for name, partition in engine.partitions.items():
        for (task, _), supply in partition.supplies.items():
            check_ready(plain, name, task, partition, supply)
            for (by, n), index in supply.groups.items():
                held = plain.state.partitions[name]
                meant = held.whole_groups(held.takeable(task, supply.fields), n, by)
                check_groups(meant, partition, index, partition._build_supply(task, supply.fields))


def check_filtered(engine: Engine, plain: Plain) -> None:
    """Supplies of claims with `where`: what they would be once somebody asks. Looked at in a copy."""
    for name, partition in engine.partitions.items():
        for kept in partition.filtered._kept.values():
            one, held = copy.deepcopy(kept), plain.state.partitions[name]
            one.refresh(partition)
            found = partition.rows.global_index[np.flatnonzero(one.supply.ready.bits)].tolist()
            takeable = held.takeable(one.task, one.supply.fields)
            assert found == [index for index in takeable if passes(held.rows[index], told(one.where))]


def told(where: Where) -> list[Condition]:
    """As a caller says it."""
    out = []
    for condition in where.conditions:
        values = [value for _, value in condition.operands]
        value = values if condition.op == "in" else values[0]
        out.append({"path": ".".join(condition.path), "op": condition.op, "value": value})
    return out


def check_ready(plain: Plain, name: str, task: str, partition: Partition, supply: Supply) -> None:
    ready = supply.ready
    rows = np.flatnonzero(ready.bits)
    assert partition.rows.global_index[rows].tolist() == plain.state.partitions[name].takeable(task, supply.fields)
    assert ready.count == len(rows)
    assert ready.blocks.tolist() == ready.bits.reshape(len(ready.blocks), -1).sum(1).tolist()
    assert (partition._build_supply(task, supply.fields).ready.lowest(ready.count) == rows).all()


def check_groups(meant: list[list[int]], partition: Partition, index: GroupIndex, fresh: Supply) -> None:
    again = fresh.by_group(index.by, index.n, partition.rows, partition.groups)
    kept, found = groups_of(partition, index), groups_of(partition, again)
    assert index.whole.count == len(kept)
    assert {tuple(group) for group in meant} <= kept <= found
    mixed = {group for group in found if is_mixed(partition, again, group)}
    assert found - mixed == {tuple(group) for group in meant}


def groups_of(partition: Partition, index: GroupIndex) -> set[tuple[int, ...]]:
    """The groups of an index as global indexes."""
    members = index._members(np.flatnonzero(index.whole.bits))
    return {tuple(group) for group in partition.rows.global_index[members].tolist()}


def is_mixed(partition: Partition, index: GroupIndex, group: tuple[int, ...]) -> bool:
    rows = partition.rows.locate(np.array([group], np.int64))
    return bool(index._mixed(rows)[0])
