"""The engine: the service's state with `commit`, the only way to change it.

Theory of operation. Operations are the functions of `core.operations`; the engine is their first argument. An operation
reads the state and checks the whole call before anything changes. It turns its decision into events (`core.events`),
and `commit` makes them one *change*: it gets the next revision, `core.apply` applies it, and it stays in `log` until
the engine's thread has written the log to the journal. After a restart the same changes are applied again, so an event
holds outcomes and never a request. One thread runs all of this.
"""

import secrets
from collections.abc import Callable

from .apply import apply, apply_alike
from .device import CPU, Device
from .errors import JournalUnavailable, PartitionCleared, PartitionNotFound
from .events import AnyEvent, Change, Kept
from .state.cells.json_cells import CellChecker
from .state.cells.signatures import Memo, SignatureKey
from .state.kept_replies import KeptReplies
from .state.partition import Partition
from .state.service import ServiceState


class Engine(ServiceState):
    """The state, with what operations need to decide and to commit."""

    def __init__(
        self,
        clock: Callable[[], float],
        wall: Callable[[], float],
        device: Device = CPU,
        max_cell_bytes: int = 65_536,
        token: Callable[[], str] = secrets.token_hex,
        replies: KeptReplies | None = None,
    ) -> None:
        super().__init__(clock, device.words, KeptReplies() if replies is None else replies)
        self.device = device  # where readiness is kept
        self.wall = wall  # Unix seconds, for created_at
        self.token = token  # a new secret, by which a lease is proven
        self.cells = CellChecker(max_cell_bytes)  # checks cells on their way in
        self.signatures: Memo[SignatureKey, bytes] = Memo()  # of writes, by their keys; a cache
        self.forms: Memo[object, tuple[bytes, list[bytes | list[bytes]]]] = Memo()  # of one-row writes; a cache
        self.run: object = None  # the calls that may follow each other and be applied together (core.writing.runs)
        self.log: list[Change] = []  # changes that are not in the journal yet
        self.applying = False  # a change is applied in part
        self.has_room = True  # the journal takes changes; set by the executor

    def find(self, partition_id: str) -> Partition | None:
        """The partition, or None if it never existed. Raises PartitionCleared."""
        partition = self.partitions.get(partition_id)
        if partition is None and partition_id in self.deleted:
            raise PartitionCleared(f"partition {partition_id!r} was deleted: make it anew with PUT or insert")
        return partition

    def get(self, partition_id: str) -> Partition:
        """The partition. Raises PartitionNotFound, PartitionCleared."""
        partition = self.find(partition_id)
        if partition is None:
            raise PartitionNotFound(f"there is no partition {partition_id!r}: make it with PUT or insert")
        return partition

    def revision_of(self, partition_id: str) -> int:
        """The revision of the partition's last change, its deletion included; 0 if it never existed."""
        partition = self.partitions.get(partition_id)
        return partition.revision if partition else self.deleted.get(partition_id, 0)

    def commit(self, *events: AnyEvent, revision: int | None = None) -> int:
        """Apply the events of one call as one change, and keep it for the journal. Returns its revision: the next one,
        unless `revision` says another.

        Raises JournalUnavailable, before anything is applied, where the journal is running out of room.
        """
        self._require_room()
        self.settle()  # else what was put off would be applied after this, and take the revision back
        change = Change(self.revision + 1 if revision is None else revision, list(events))
        self.applying = True
        apply(self, change)
        self.applying = False
        self.log.append(change)
        return change.revision

    def put_off(self, partition: Partition, events: list[AnyEvent]) -> int:
        """As `commit`; it is applied once the partitions are asked for, with all of its run. Returns its revision."""
        self._require_room()
        self.revision = partition.revision = self.revision + 1
        change = Change(self.revision, events)
        self.pending.append(change)
        self.log.append(change)
        self.changed.add(partition.partition_id)
        return change.revision

    def settle(self) -> None:
        """Apply the changes that were put off, which are alike."""
        if self.pending:
            changes, self.pending = self.pending, []
            self.applying = True
            apply_alike(self, changes)
            self.applying = False

    def keep_reply(self, reply: Kept, since: int) -> None:
        """Keep the reply to the call that began at revision `since`, in one change with its events if it had any."""
        if self.revision == since:
            self._require_room()
        events = self.log.pop().events if self.revision > since else []
        self.log.append(Change(self.revision, events, reply))
        self.replies.put(reply)

    def _require_room(self) -> None:
        if not self.has_room:
            raise JournalUnavailable(
                "the journal is low on disk space and nothing was changed: free some, then send again"
            )
