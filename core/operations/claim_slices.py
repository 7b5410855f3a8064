"""Builds the supply of a claim in a large partition in slices, while its caller waits and other calls run.

A supply, its `where` and what a sampler keeps of it are brought up to date in steps of at most STEP blocks of rows. A
claim for which all this is up to date has little to look at, and is made as anywhere.
"""

from collections.abc import Callable, Generator
from typing import TypeVar

from core.engine import Engine
from core.slices import Sliced
from core.state.partition import Partition
from core.state.supply.index_set import BLOCK
from core.state.supply.marks import STEP
from core.state.supply.supply import Supply

from .claim_request import ClaimRequest

FEW = 8 * BLOCK  # rows that are looked at at once
T = TypeVar("T")
Claiming = Callable[[Engine, str, ClaimRequest], T | Sliced[T]]


def in_slices(claiming: Claiming[T]) -> Claiming[T]:
    """An operation on a partition for a request, at once where little is to be looked at before."""

    def begin(engine: Engine, partition_id: str, request: ClaimRequest) -> T | Sliced[T]:
        if is_prepared(engine, partition_id, request):
            return claiming(engine, partition_id, request)
        return _steps(engine, claiming, partition_id, request)

    return begin


def _steps(engine: Engine, claiming: Claiming[T], partition_id: str, request: ClaimRequest) -> Sliced[T]:
    held: list[Supply] = []  # they are kept so
    while not is_prepared(engine, partition_id, request):
        held = _supplies(engine.partitions.get(partition_id), request)
        yield
    held.clear()
    made = claiming(engine, partition_id, request)
    return (yield from made) if isinstance(made, Generator) else made


def is_prepared(engine: Engine, partition_id: str, request: ClaimRequest) -> bool:
    """Do one step, if any is left; whether none is."""
    partition = engine.partitions.get(partition_id)
    if partition is None or partition.rows.n <= FEW:
        return True
    supplies = _supplies(partition, request)
    if not all(supply.refresh(partition, STEP) for supply in supplies):
        return False
    return not supplies or request.sampler.prepare(partition, supplies[0], STEP)


def _supplies(partition: Partition | None, request: ClaimRequest) -> list[Supply]:
    """What the claim asks for; of a sealed partition with a `where`, also what tells which rows are left."""
    if partition is None or not all(name in partition.fields for name in request.supply_fields):
        return []
    asked = [(request.supply_fields, request.where)]
    if request.where is not None and partition.is_sealed:
        asked += [((), request.where), (request.supply_fields, None)]
    return [partition.supplies.begun(partition, request.task, *one) for one in asked]
