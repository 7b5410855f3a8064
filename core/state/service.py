"""The state of the whole service: its partitions, leases, clears, kept replies and counters.

It decides nothing and refuses nothing; `core.apply` changes it, by events alone. What of it a snapshot holds is named
in `core.snapshot.image`.
"""

from collections.abc import Callable, Iterable

from core.events import Change

from .cells.readiness import NewWords
from .clears import Clears
from .deadlines import Deadlines
from .kept_replies import KeptReplies
from .leases import Lease, Leases
from .partition import Partition

Gone = Partition | list[Lease]
"""A deleted partition, or forgotten leases: more than are freed in one step."""
MANY_LEASES = 1024  # that are freed in one step


class ServiceState:
    """One object, owned by one thread."""

    def __init__(self, clock: Callable[[], float], words: NewWords, replies: KeptReplies) -> None:
        self.clock = clock  # monotonic seconds, for deadlines
        self.words = words  # makes the bit words of readiness
        self.pending: list[Change] = []  # changes that are made and not applied yet
        self._partitions: dict[str, Partition] = {}  # by id, in the order they were made
        self.deleted: dict[str, int] = {}  # by id: the revision of its deletion; the oldest are forgotten
        self.leases = Leases()  # of all partitions, by number
        self.clears = Clears()  # of all partitions, by number
        self.ttl_deadlines: Deadlines[tuple[str, int]] = Deadlines()  # by partition and number of the timed batch
        self.replies = replies  # by Idempotency-Key
        self.next_index = 0  # the next global index; one that was given out is never given out again
        self.revision = 0  # of the last change
        self.epoch = 1  # rises with each restore
        self.history = ""  # names this history once a checkpoint was made; "" until then
        self.gone: list[Gone] | None = None  # to be freed yet, see `freeing`; None: it is freed at once
        self.changed: set[str] = set()  # partitions that changed since the calls that wait were last looked at

    @property
    def partitions(self) -> dict[str, Partition]:
        """By id, in the order they were made; whatever was put off is applied first."""
        if self.pending:
            self.settle()
        return self._partitions

    @partitions.setter
    def partitions(self, partitions: dict[str, Partition]) -> None:
        self._partitions = partitions

    def applied(self, partition_id: str) -> Partition | None:
        """The partition without the changes that were put off, which stay so."""
        return self._partitions.get(partition_id)

    def settle(self) -> None:
        """Apply the changes that were put off. Only an engine puts any off."""
        raise NotImplementedError

    def close_leases(self, leases: Iterable[Lease]) -> None:
        """These open leases have no open row left. If many others are forgotten for them, those are freed later."""
        forgotten = self.leases.close(leases)
        if self.gone is not None and len(forgotten) > MANY_LEASES:
            self.gone.append(forgotten)

    def changing(self, partition_id: str) -> Partition:
        """The partition that an event is about to change, its revision now that of the change."""
        partition = self.partitions[partition_id]
        partition.revision = self.revision
        return partition
