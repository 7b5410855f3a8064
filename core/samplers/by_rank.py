"""Base of the samplers with memory: a request names a rank and a batch, and gets the same rows each time.

It hands out whole groups, as `grpo_group` has them; groups of one row are the rows themselves.
"""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from core.arrays import Ints
from core.state.partition import Partition
from core.state.supply.group_index import GroupBy
from core.state.supply.supply import Supply

from .by_row import ByRow
from .contract import Blocking
from .grpo_group import GrpoGroup

Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]
MAX_GROUP = 65_536


class ByRank(ByRow, frozen=True, kw_only=True):
    """`dp_rank` is the data-parallel rank that asks, `batch_index` the number of its batch.

    `group_by` says what makes a group of `n_samples_per_prompt` rows.
    """

    terms: ClassVar[tuple[str, ...]] = ("n_samples_per_prompt", "group_by")  # what `arguments` holds, in its order

    dp_rank: Number
    batch_index: Number
    n_samples_per_prompt: Annotated[int, Meta(ge=1, le=MAX_GROUP)] = 1
    group_by: GroupBy = "group_id"

    @property
    def key(self) -> str:
        """What is remembered of a task under one name: see core.state.sampler_memory."""
        raise NotImplementedError

    @property
    def ranks(self) -> int:
        """Shares of a key: rows are taken for so many batches at once."""
        return 1

    @property
    def place(self) -> int:
        """Which of the key's shares is asked for."""
        return 0

    def term(self, name: str) -> object:
        """The value of one of `terms`, as it is compared."""
        return getattr(self, name)

    def arguments(self) -> bytes:
        """What else every request of the key must say alike, as a JSON array; defaults at its end are left out."""
        values = [self.term(name) for name in self.terms]
        defaults = self._defaults()
        while values and values[-1] == defaults[len(values) - 1]:
            values.pop()
        return msgspec.json.encode(values)

    def told(self, arguments: bytes) -> list[object]:
        """The value of each of `terms` in what `arguments` gave, in this version or in an older one that had fewer."""
        values = list(msgspec.json.decode(arguments))  # the object that older versions wrote is empty
        return [*values, *self._defaults()[len(values) :]]

    def _defaults(self) -> list[Any]:
        by_name = {field.name: field.default for field in msgspec.structs.fields(self)}
        return [by_name[name] for name in self.terms]

    @property
    def group_size(self) -> int:
        """Whole groups."""
        return self.n_samples_per_prompt

    @property
    def groups(self) -> GrpoGroup:
        """What hands out whole groups."""
        return GrpoGroup(self.n_samples_per_prompt, self.group_by)

    def check(self, batch_size: int) -> None:
        """A batch is whole groups."""
        self.groups.check(batch_size)

    def prepare(self, partition: Partition, supply: Supply, most: int) -> bool:
        """Whole groups, if they have more than one row."""
        return self.n_samples_per_prompt == 1 or self.groups.prepare(partition, supply, most)

    def offers(self, partition: Partition, supply: Supply) -> int:
        """All ready rows; those of whole groups, if they have more than one."""
        return supply.ready.count if self.n_samples_per_prompt == 1 else self.groups.offers(partition, supply)

    def take(self, partition: Partition, supply: Supply, batch_size: int) -> Ints:
        """The oldest groups, group after group."""
        if self.n_samples_per_prompt == 1:
            return supply.ready.lowest(batch_size)
        return self.groups.take(partition, supply, batch_size)

    def split(self, partition: Partition, rows: Ints) -> list[Ints]:
        """The rows of each share, in the order they are handed out."""
        return [rows]

    def blocking(self, partition: Partition, supply: Supply | None) -> list[Blocking]:
        """Groups that are not whole."""
        return self.groups.blocking(partition, supply) if self.n_samples_per_prompt > 1 else []
