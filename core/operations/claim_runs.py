"""Runs of claims: equal claims that follow each other, lowest indexes first and consumed at once, applied together.

As core.writing.runs has it of puts: the first claim is an ordinary one and begins the run, a further one is decided
against the partition and what the run has handed out, and its change is put off. The rows of several claims are looked
up at once. Where there is no full batch, and for any other request, the ordinary claim decides.
"""

import numpy as np

from core.arrays import Ints, pack
from core.engine import Engine
from core.events import Consumed
from core.samplers.sequential import Sequential
from core.state.partition import Partition

from .claim_request import ClaimRequest
from .claim_try import ClaimTry

AHEAD, MOST = 16, 4096  # claims and rows that are looked up at once


class ClaimRun:
    """`_ahead`: the lowest rows that the task can take; those before `_at` are handed out."""

    __slots__ = ("_ahead", "_at", "_partition", "_request", "_revision")

    def __init__(self, partition: Partition, request: ClaimRequest) -> None:
        self._partition, self._request, self._revision = partition, request, partition.revision
        self._ahead: Ints = np.empty(0, np.int64)
        self._at = 0

    def take(self, engine: Engine, partition_id: str, request: ClaimRequest) -> tuple[Partition, Ints, Ints] | None:
        """The rows of a full batch and their indexes, their change put off; None: it is for the ordinary claim."""
        partition = self._partition
        is_same = request is self._request or request == self._request
        if not is_same or partition_id != partition.partition_id or not self._is_current(engine):
            return None
        rows = self._next(engine, request)
        if len(rows) < request.wanted:
            return None
        indexes = partition.rows.global_index[rows]
        self._revision = engine.put_off(partition, [Consumed(partition_id, request.task, pack(indexes))])
        self._at += len(rows)
        return partition, rows, indexes

    def _is_current(self, engine: Engine) -> bool:
        """Nothing but this run has changed the partition: whatever does gives it another revision."""
        partition = self._partition
        if partition.revision != self._revision:
            return False
        return bool(engine.pending) or engine.partitions.get(partition.partition_id) is partition

    def _next(self, engine: Engine, request: ClaimRequest) -> Ints:
        """The next rows, as many as are wanted or all."""
        wanted = request.wanted
        if self._at + wanted > len(self._ahead):
            engine.settle()
            supply = ClaimTry.of(self._partition, request).supply
            most = wanted * max(1, min(AHEAD, MOST // wanted))
            self._at, self._ahead = 0, self._ahead[:0]
            if supply is not None:
                self._ahead = request.sampler.take(self._partition, supply, most)
        return self._ahead[self._at : self._at + wanted]


def follow(engine: Engine, partition_id: str, request: ClaimRequest) -> tuple[Partition, Ints, Ints] | None:
    """As `ClaimRun.take` of the run that there is."""
    run = engine.run
    return run.take(engine, partition_id, request) if isinstance(run, ClaimRun) else None


def begin(engine: Engine, partition: Partition, request: ClaimRequest) -> None:
    """This claim was handed out: those that follow and ask for the same may be put off."""
    if type(request.sampler) is Sequential and request.lease_s is None and request.where is None:
        engine.run = ClaimRun(partition, request)
