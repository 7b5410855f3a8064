"""Loads an operator's own sampler at the start, and checks each of its answers against the contract of samplers.

An error in one reaches only its caller, as a bug of the service would: nothing is changed, and other calls go on.
"""

import inspect
from dataclasses import dataclass

import msgspec
import numpy as np

from core.arrays import Ints
from core.state.partition import Partition
from core.state.supply.supply import Supply

from .contract import Blocking, Sampler

_METHODS = {"check": 1, "min_batch_size": 1, "offers": 2, "enough": 3, "take": 3, "blocking": 2}


class Broke(Exception):
    """A sampler of the operator's did what no sampler may."""


def flaw(kind: object) -> str | None:
    """Why this cannot be a sampler; None where it can."""
    if not isinstance(kind, type) or not issubclass(kind, msgspec.Struct):
        return "is no msgspec.Struct: subclass core.samplers.by_row.ByRow; its members are a claim's arguments"
    if not kind.__struct_config__.forbid_unknown_fields or not kind.__struct_config__.frozen:
        return "must be declared with frozen=True and forbid_unknown_fields=True"
    if not hasattr(kind, "group_size"):
        return "has no group_size"
    bad = [name for name, count in _METHODS.items() if not _takes(getattr(kind, name, None), count)]
    return f"has no method {bad[0]} as core.samplers.contract.Sampler has it" if bad else None


def _takes(method: object, count: int) -> bool:
    if not callable(method):
        return False
    try:
        inspect.signature(method).bind(*range(count + 1))
    except (TypeError, ValueError):
        return False
    return True


@dataclass(frozen=True, slots=True)
class Own:
    """The operator's sampler `inner`, its rows checked before they are handed out."""

    name: str
    inner: Sampler

    @property
    def group_size(self) -> int:
        """As the operator's."""
        return self.inner.group_size

    def check(self, batch_size: int) -> None:
        """As the operator's."""
        self.inner.check(batch_size)

    def min_batch_size(self, batch_size: int) -> int:
        """As the operator's."""
        return self.inner.min_batch_size(batch_size)

    def prepare(self, partition: Partition, supply: Supply, most: int) -> bool:
        """What an operator's sampler keeps it brings up to date itself, at once."""
        return True

    def offers(self, partition: Partition, supply: Supply) -> int:
        """As the operator's."""
        return self.inner.offers(partition, supply)

    def enough(self, partition: Partition, supply: Supply, batch_size: int) -> int:
        """As the operator's."""
        return self.inner.enough(partition, supply, batch_size)

    def take(self, partition: Partition, supply: Supply, batch_size: int) -> Ints:
        """The operator's rows. Raises Broke unless they are rows of the supply, none twice, at most `batch_size`."""
        rows = np.asarray(self.inner.take(partition, supply, batch_size))
        if len(rows) and (rows.ndim != 1 or rows.dtype != np.int64):
            raise Broke(f"sampler {self.name!r} gave {rows.dtype} {rows.shape}: row numbers are int64 [rows]")
        if len(rows) > batch_size or len(np.unique(rows)) < len(rows) or len(supply.ready.has(rows)) < len(rows):
            raise Broke(f"sampler {self.name!r} gave rows that cannot be taken, one twice, or more than {batch_size}")
        return rows.astype(np.int64)

    def blocking(self, partition: Partition, supply: Supply | None) -> list[Blocking]:
        """As the operator's."""
        return self.inner.blocking(partition, supply)
