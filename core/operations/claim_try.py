"""One try of a claim: what a partition has for it at this moment. It decides; the claim commits.

Partition and supply are found once, when the try is made, and hold until the next change: a later try is a new one.
(It is no *attempt*: that is one hand-out of a row under a lease.)
"""

from dataclasses import dataclass

from core.arrays import Ints
from core.reading.blocking import explain
from core.reading.sealed_partition import is_last, stranded, unready
from core.samplers import Blocking, ByRank
from core.samplers.token_budget import TokenBudget
from core.state.partition import Partition
from core.state.supply.news import Lack
from core.state.supply.supply import Supply

from .claim_request import ClaimRequest
from .claim_shares import Chosen, ShareRequest


@dataclass(frozen=True, slots=True)
class ClaimTry:
    """`supply`: what the task can take, None while a field is unknown; `shares`: only for samplers with memory."""

    request: ClaimRequest
    partition: Partition
    supply: Supply | None
    shares: ShareRequest | None

    @classmethod
    def of(cls, partition: Partition, request: ClaimRequest) -> "ClaimTry":
        """What there is for this request now."""
        supply = None
        if all(name in partition.fields for name in request.supply_fields):
            supply = partition.supply(request.task, request.supply_fields, request.where)
        sampler = request.sampler
        shares = ShareRequest(partition, supply, request, sampler) if isinstance(sampler, ByRank) else None
        return cls(request, partition, supply, shares)

    # What goes out

    def enough(self) -> int:
        """Rows that need not wait for more: a full batch, or the last ones of a sealed partition once all are ready."""
        if self.supply is None:
            return self.request.wanted
        if self.shares is not None and self._is_last():
            return 1  # a split takes what it can get of them
        return self.request.sampler.enough(self.partition, self.supply, self.request.wanted)

    def choose(self, enough: int) -> Chosen | None:
        """At least `enough` rows, whatever there is where no more is to come, or the claim that has them already."""
        chosen = self._choose(enough)
        return self._choose(1) if chosen is None and self._is_last() else chosen

    def _choose(self, enough: int) -> Chosen | None:
        if self.shares is not None:
            return self.shares.choose(lambda: self._take(enough), enough)
        rows = self._take(enough)
        return None if rows is None else Chosen(rows)

    def _take(self, enough: int) -> Ints | None:
        sampler, supply = self.request.sampler, self.supply
        if supply is None or sampler.offers(self.partition, supply) < enough:
            return None
        rows = sampler.take(self.partition, supply, self.request.wanted)
        return rows if len(rows) >= enough else None

    def _is_last(self) -> bool:
        return is_last(self.partition, self.supply, self.request.task)

    # Whether to wait

    def is_over(self) -> bool:
        """Nothing is to come that this claim could get."""
        return self.is_done() or self.stranded() > 0

    def is_done(self) -> bool:
        """No more samples are to come, and the task has settled all there are."""
        return self.partition.is_done(self.partition.tasks.get(self.request.task))

    def stranded(self) -> int:
        """Rows that are left, and that this claim could never get where it gets none now."""
        return stranded(self.partition, self.request.task, self.request.supply_fields)

    def is_ripe(self) -> bool:
        """Over, or as much on offer as can be had. O(1), unlike `choose`."""
        return self.is_over() or self._is_on_offer()

    def _is_on_offer(self) -> bool:
        if self.shares is not None and self.shares.is_known:
            return self.shares.is_answered()
        if self.supply is None:
            return False
        enough = 1 if self._is_last() else self.enough()
        return self.request.sampler.offers(self.partition, self.supply) >= enough

    def lack(self) -> Lack | None:
        """What must happen before this claim, which is not ripe, can be; None: any change may do.

        A row that becomes ready adds at most one group to what the sampler offers.
        """
        request, sampler = self.request, self.request.sampler
        if self.shares is not None and self.shares.is_known:
            return None
        if self.supply is None:
            return Lack(request.task, (), None, 0)
        if isinstance(sampler, TokenBudget):  # one row more, or less, may fill a budget
            return Lack(request.task, self.supply.fields, None, 1, follows=True)
        short = self.enough() - sampler.offers(self.partition, self.supply)
        rows = max(1, -(-short // sampler.group_size))
        where, follows = request.where, self.shares is not None
        if self.partition.is_sealed:
            rows, where = min(rows, unready(self.partition, self.supply, request.task) or rows), None
        return Lack(request.task, self.supply.fields, where, rows, follows)

    # What is told

    def ready(self) -> int:
        """Rows this claim could be about, before groups: of a key that is known, only its own."""
        if self.shares is not None and self.shares.is_known:
            chosen = self.shares.choose(lambda: None, 0)
            return len(chosen.rows) if chosen else 0
        return self.supply.ready.count if self.supply else 0

    def blocking(self) -> list[Blocking]:
        """Every reason that holds rows back."""
        request = self.request
        return explain(self.partition, request.task, request.fields, request.sampler, self.supply)
