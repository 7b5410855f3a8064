"""What a claim asks for, checked once."""

from dataclasses import dataclass, field

from core.errors import Invalid
from core.events import ShareTerms
from core.names import check_fields
from core.reading.batch import View
from core.samplers import ByRank, Sampler
from core.state.where import Where


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """What a claim asks for. `min_batch_size` ≤ rows ≤ `batch_size`; fewer only once `wait_s` is over."""

    task: str
    fields: tuple[str, ...]
    batch_size: int
    min_batch_size: int
    wait_s: float
    sampler: Sampler
    view: View
    lease_s: float | None = None
    worker: str | None = None
    where: Where | None = None
    supply_fields: tuple[str, ...] = field(init=False)  # sorted, once each: what a supply is kept for

    def __post_init__(self) -> None:
        check_fields(self.fields, "body.fields")
        if self.min_batch_size > self.batch_size:
            raise Invalid.at("body.min_batch_size", f"must be at most batch_size={self.batch_size}")
        self.sampler.check(self.batch_size)
        object.__setattr__(self, "supply_fields", tuple(sorted(set(self.fields))))

    @property
    def batches(self) -> int:
        """Batches that are taken at once: one, or one for each rank."""
        return self.sampler.ranks if isinstance(self.sampler, ByRank) else 1

    @property
    def wanted(self) -> int:
        """Rows of all batches that are taken at once."""
        return self.batch_size * self.batches

    @property
    def least(self) -> int:
        """Rows below which even a claim whose time is up gets none."""
        return self.min_batch_size * self.batches

    def terms(self, sampler: ByRank) -> ShareTerms:
        """What is remembered of this claim beside its rows; `sampler` is its own."""
        ack = "on_dispatch" if self.lease_s is None else "explicit"
        return ShareTerms(self.supply_fields, self.batch_size, ack, sampler.arguments())
