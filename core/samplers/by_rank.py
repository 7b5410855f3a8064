"""Base of the samplers with memory: a request names a rank and a batch, and gets the same rows each time."""

from typing import Annotated, ClassVar

from msgspec import Meta

from core.arrays import Ints
from core.state.partition import Partition

from .by_row import ByRow

Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class ByRank(ByRow, frozen=True):
    """`dp_rank` is the data-parallel rank that asks, `batch_index` the number of its batch."""

    terms: ClassVar[tuple[str, ...]] = ()  # the arguments that `arguments` holds, in their order

    dp_rank: Number
    batch_index: Number

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

    def arguments(self) -> bytes:
        """What else every request of the key must say alike, as JSON."""
        return b"{}"

    def split(self, partition: Partition, rows: Ints) -> list[Ints]:
        """The rows of each share, in the order they are handed out."""
        return [rows]
