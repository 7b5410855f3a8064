"""Says of a waiting claim whether to try it again, and what it lacks. Its supply is kept as long as it waits."""

from core.engine import Engine
from core.errors import TooManyWaiting
from core.samplers.custom import Own
from core.state.supply.news import Lack
from core.state.supply.supplies import MAX_KEPT_BYTES
from core.state.supply.supply import Supply

from .claim_request import ClaimRequest
from .claim_slices import is_prepared
from .claim_try import ClaimTry


def check_room(engine: Engine, partition_id: str) -> None:
    """Raises TooManyWaiting where the claims that wait for this partition hold too much memory for one more."""
    partition = engine.partitions.get(partition_id)
    if partition is not None and partition.supplies.is_full(partition.rows.n):
        raise TooManyWaiting(
            f"the claims that wait in partition {partition_id!r} hold {MAX_KEPT_BYTES >> 20} MiB for what each can "
            "take: let some end first, or wait with fewer tasks, fields, `where` and weights of their own"
        )


class ClaimWait:
    """`request` for a partition that may not exist yet."""

    __slots__ = ("_engine", "_held", "_partition_id", "_request")

    def __init__(self, engine: Engine, partition_id: str, request: ClaimRequest, found: ClaimTry | None) -> None:
        self._engine, self._partition_id, self._request = engine, partition_id, request
        self._held: Supply | None = None if found is None else found.supply

    def is_ripe(self) -> bool:
        """O(1). An operator's sampler is asked by the retry alone, where an error of it reaches its caller.

        Where there is much to look at first, the retry does it.
        """
        if isinstance(self._request.sampler, Own) or not is_prepared(self._engine, self._partition_id, self._request):
            return True
        found = self._try()
        return self._partition_id in self._engine.deleted if found is None else found.is_ripe()

    def lacks(self) -> Lack | None:
        """What must happen before it can be ripe; None: any change may do."""
        found = self._try()
        if isinstance(self._request.sampler, Own):
            return None
        return Lack(self._request.task, (), None, 0) if found is None else found.lack()

    def _try(self) -> ClaimTry | None:
        partition = self._engine.partitions.get(self._partition_id)
        if partition is None:
            return None
        found = ClaimTry.of(partition, self._request)
        self._held = found.supply
        return found
