"""The whole service's state, owned by one thread. Operations check, decide and commit events; only events change it.

Operations are the functions of `core.operations`; each takes the engine first. Time is an argument of the engine.
"""

import secrets
from collections.abc import Callable
from typing import Any

import torch

from core.apply import clear as clearing
from core.apply import hand_out as handing_out
from core.apply import remove as leaving
from core.snapshot import restore as restoring
from core.state.cells.forms import Memo, Said
from core.state.cells.json_cells import CellChecker
from core.state.clears import Clears
from core.state.deadlines import Deadlines
from core.state.kept_replies import KeptReplies
from core.state.leases import Leases
from core.state.partition import Partition

from .errors import JournalUnavailable, PartitionCleared, PartitionNotFound
from .events import (
    Allotted,
    AnyEvent,
    BackendMetaSet,
    Begun,
    Change,
    ClearAborted,
    ClearCommitted,
    Cleared,
    ClearPlanned,
    Consumed,
    CustomMetaSet,
    Expired,
    Extended,
    Grouped,
    Inserted,
    Kept,
    Leased,
    Limited,
    PartitionDeleted,
    PartitionMade,
    PartitionSet,
    Produced,
    Reset,
    Restored,
    Revoked,
    Sealed,
    Settled,
    Timed,
)

MAX_DELETED = 10_000

_APPLY: dict[type, Callable[[Partition, Any], Any]] = {
    PartitionSet: Partition.configure,
    Inserted: Partition.insert,
    Grouped: Partition.group,
    Produced: Partition.produce,
    CustomMetaSet: Partition.set_custom_meta,
    BackendMetaSet: Partition.set_backend_meta,
    Revoked: Partition.revoke,
    Cleared: leaving.clear,
    Timed: Partition.time,
    Expired: leaving.expire,
    Consumed: handing_out.consume,
    Reset: handing_out.reset,
    Limited: Partition.limit,
    Sealed: Partition.seal,
    Leased: handing_out.lease,
    Settled: handing_out.settle,
    ClearPlanned: clearing.plan,
    ClearCommitted: clearing.commit,
    ClearAborted: clearing.abort,
    Allotted: handing_out.allot,
}
_FOLLOWED = {Leased, Settled, ClearPlanned, ClearCommitted, ClearAborted, Timed, Cleared, Expired, Reset}
"""Events that concern the whole service too."""


class Engine:
    """Partitions, the index and revision counters, replies kept by key, and the changes not yet journaled.

    `epoch` rises with each restore; `history` names this history once a checkpoint was made, and is "" until then.
    `clock` gives monotonic seconds (deadlines), `wall` Unix seconds (created_at), `token` what a lease is proven by;
    `replies` says how many are kept. `has_room`, set from outside, is whether changes are taken.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        wall: Callable[[], float],
        device: torch.device | None = None,
        max_cell_bytes: int = 65_536,
        token: Callable[[], str] = secrets.token_hex,
        replies: KeptReplies | None = None,
    ) -> None:
        self.clock, self.wall, self.token = clock, wall, token
        self.device = device or torch.device("cpu")
        self.cells = CellChecker(max_cell_bytes)
        self.forms: Memo[Said, bytes] = Memo()
        self.partitions: dict[str, Partition] = {}
        self.deleted: dict[str, int] = {}
        self.leases = Leases()
        self.clears = Clears()
        self.ttl_deadlines: Deadlines[tuple[str, int]] = Deadlines()
        self.replies = KeptReplies() if replies is None else replies
        self.next_index = 0
        self.revision = 0
        self.epoch = 1
        self.history = ""
        self.log: list[Change] = []
        self.changed: set[str] = set()
        self.applying = False
        self.has_room = True

    def find(self, partition_id: str) -> Partition | None:
        """The partition, or None if it never was. Raises PartitionCleared."""
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
        """Of the partition's last change, its deletion included; 0 if it never was."""
        partition = self.partitions.get(partition_id)
        return partition.revision if partition else self.deleted.get(partition_id, 0)

    def commit(self, *events: AnyEvent, revision: int | None = None) -> int:
        """Apply the events of one call as one change, and keep it for the journal. Returns the new revision, the next
        one unless told.

        Raises JournalUnavailable, before anything is applied, where the journal is running out of room.
        """
        self._require_room()
        change = Change(self.revision + 1 if revision is None else revision, list(events))
        self.applying = True
        self.apply(change)
        self.applying = False
        self.log.append(change)
        return change.revision

    def keep(self, reply: Kept, since: int) -> None:
        """The reply to the call that began at revision `since`: in one change with its events, if it had any."""
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

    def apply(self, change: Change) -> None:
        """What `commit` and replay share."""
        self.revision = change.revision
        if change.kept is not None:
            self.replies.put(change.kept)
        for event in change.events:
            self.changed.add(event.partition)
            self._apply(event)

    def _apply(self, event: AnyEvent) -> None:
        change = _APPLY.get(type(event))
        if change is not None:
            partition = self.partitions[event.partition]
            partition.revision = self.revision
            touched = change(partition, event)
            if type(event) in _FOLLOWED:
                self._follow(event, touched)
            while partition.ttls.ended:
                self.ttl_deadlines.discard((event.partition, partition.ttls.ended.pop()))
        elif isinstance(event, PartitionMade):
            self._make(event)
        elif isinstance(event, Extended):
            self.partitions[event.partition].revision = self.revision
            self.leases.extend(self.leases.open[event.number], event.length_s, self.clock())
        elif isinstance(event, PartitionDeleted):
            self._delete(event.partition)
        else:
            self._turn(event)
        if isinstance(event, Inserted):
            self.next_index = max(self.next_index, event.first + event.count)

    def _turn(self, event: AnyEvent) -> None:
        """What concerns no partition, but the whole history."""
        if isinstance(event, Begun):
            self.history = event.history
        elif isinstance(event, Restored):
            restoring.take_over(self, event.image, self.revision)
            if event.releases:
                restoring.release_all(self)

    def _make(self, event: PartitionMade) -> None:
        partition = Partition(event.partition, event.created_at, self.revision, self.device)
        deleted_at = self.deleted.pop(event.partition, None)
        if deleted_at is not None:
            partition.past.had_another(deleted_at)
        self.partitions[event.partition] = partition

    def _follow(self, event: AnyEvent, touched: Any) -> None:
        """Leases, clears and deadlines that an event began or closed, or took rows from."""
        if isinstance(event, Leased):
            self.leases.begin(touched, self.clock())
        elif isinstance(event, Settled):
            self.leases.settle([touched])
        elif isinstance(event, ClearPlanned):
            self.clears.begin(touched)
        elif isinstance(event, Timed):
            self.ttl_deadlines.put((event.partition, self.revision), self.clock() + event.length_s)
        elif touched:
            self.leases.settle(touched)
        if isinstance(event, ClearCommitted | ClearAborted):
            self.clears.close(event.number, "committed" if isinstance(event, ClearCommitted) else "aborted")

    def _delete(self, partition_id: str) -> None:
        partition = self.partitions.pop(partition_id)
        self.leases.settle(partition.lose_all())
        for number in partition.clears:
            self.clears.close(number, "committed")
        for number in partition.ttls.batches:
            self.ttl_deadlines.discard((partition_id, number))
        self.deleted[partition_id] = self.revision
        if len(self.deleted) > MAX_DELETED:
            del self.deleted[next(iter(self.deleted))]
