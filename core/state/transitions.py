"""The states of a row, of a row for a task, of a row of a lease and of a clear, and which event takes which where.

Theory of operation. There are four machines. Each is a table: its states, and its transitions as (from, event, to). A
transition from None is how a thing of that machine begins. What is not in a table does not happen.

* A *row* is one machine per global index. `Rows.state` has it.
* A *row for a task* is one machine per task and row that is LIVE or CLEARING; it begins FREE and ends with its row.
  `Task.state` has it. It goes on while the row is CLEARING: what is accepted then counts.
* A *row of a lease* is one machine per lease and row that it handed out. `Lease.fate` has it. A lease has no state of
  its own beside these: it is open as long as one of its rows is OPEN.
* A *clear* is one machine per clear. `Clear.state` has it, in the word that callers see.

One event may move several machines: a Settled that accepts a row takes it from LEASED to CONSUMED for the task, and
from OPEN to ACCEPTED for the lease. A restore replaces everything by an image: its transitions begin at the states that
the image has. `docs/reference/states.md` is drawn from these tables; the tests hold what happens to them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from core.events import (
    Allotted,
    ClearAborted,
    ClearCommitted,
    Cleared,
    ClearPlanned,
    Consumed,
    Event,
    Expired,
    Inserted,
    Leased,
    LeasesEnded,
    PartitionDeleted,
    Reset,
    Restored,
    Settled,
)

ABSENT, LIVE, CLEARING, GONE = range(4)  # of a row
FREE, HELD, LEASED, CONSUMED, DEAD = range(5)  # of a row for a task
OPEN, ACCEPTED, RELEASED, REJECTED, LOST = range(5)  # of a row of a lease

ClearState = Literal["pending", "committed", "aborted"]
PENDING: Final = "pending"
COMMITTED: Final = "committed"
ABORTED: Final = "aborted"

State = int | str
Transition = tuple[State | None, type[Event], State]


@dataclass(frozen=True, slots=True)
class Machine:
    """`states`: the name of each, and what it means. `first`: where a thing of it begins that no event has moved."""

    name: str
    meaning: str
    states: Mapping[State, tuple[str, str]]
    transitions: tuple[Transition, ...]
    first: State | None = None


ROW: Final = Machine(
    "A row",
    "A row stands for one `global_index` of a partition.",
    {
        ABSENT: ("ABSENT", "The index was not given out yet."),
        LIVE: ("LIVE", "The sample is there: calls find it, and tasks can take it."),
        CLEARING: ("CLEARING", "A clear hides the sample while its bytes are deleted; no call finds it, leases go on."),
        GONE: ("GONE", "The sample was cleared, deleted or expired. The index is never given out again."),
    },
    (
        (ABSENT, Inserted, LIVE),
        (LIVE, ClearPlanned, CLEARING),
        (CLEARING, ClearAborted, LIVE),
        (CLEARING, ClearCommitted, GONE),
        (LIVE, Cleared, GONE),
        (LIVE, Expired, GONE),
        (LIVE, PartitionDeleted, GONE),
        (CLEARING, PartitionDeleted, GONE),
    ),
    ABSENT,
)

TASK: Final = Machine(
    "A row for a task",
    "Each task has a state of its own for each row that is LIVE or CLEARING; it ends when the row is GONE. "
    "Counts that callers see as `leased` are of HELD and LEASED rows.",
    {
        FREE: (
            "FREE",
            "The task has not had the row, or gave it back: once its fields are ready, a claim can take it.",
        ),
        HELD: ("HELD", "The row is set aside for a share of the sampler memory: only a claim for that share takes it."),
        LEASED: ("LEASED", "A claim with `ack: explicit` has the row, until it settles it or the lease ends."),
        CONSUMED: ("CONSUMED", "The task is done with the row."),
        DEAD: ("DEAD", "The row was rejected, or handed out too often: the task does not get it again."),
    },
    (
        (FREE, Consumed, CONSUMED),
        (FREE, Leased, LEASED),
        (FREE, Allotted, HELD),
        (HELD, Consumed, CONSUMED),
        (HELD, Leased, LEASED),
        (HELD, Cleared, FREE),
        (HELD, ClearCommitted, FREE),
        (LEASED, Settled, CONSUMED),
        (LEASED, Settled, DEAD),
        (LEASED, Settled, FREE),
        (LEASED, Settled, HELD),
        (LEASED, LeasesEnded, DEAD),
        (LEASED, LeasesEnded, FREE),
        (LEASED, LeasesEnded, HELD),
        (HELD, Reset, FREE),
        (LEASED, Reset, FREE),
        (CONSUMED, Reset, FREE),
        (DEAD, Reset, FREE),
        (HELD, Restored, FREE),
        (LEASED, Restored, FREE),
    ),
    FREE,
)

LEASE: Final = Machine(
    "A row of a lease",
    "A lease is open as long as one of its rows is OPEN; then it is closed, and nothing of it changes any more.",
    {
        OPEN: ("OPEN", "The claim has the row and has said nothing of it yet."),
        ACCEPTED: ("ACCEPTED", "The claim accepted the row: the task has consumed it."),
        RELEASED: (
            "RELEASED",
            "The claim gave the row back: it can go out again, or is dead where it was out too often.",
        ),
        REJECTED: ("REJECTED", "The claim rejected the row: it is dead for the task."),
        LOST: ("LOST", "The lease ended, or the row was taken from it: the claim may not say anything of it any more."),
    },
    (
        (None, Leased, OPEN),
        (OPEN, Settled, ACCEPTED),
        (OPEN, Settled, RELEASED),
        (OPEN, Settled, REJECTED),
        (OPEN, LeasesEnded, LOST),
        (OPEN, Reset, LOST),
        (OPEN, Cleared, LOST),
        (OPEN, ClearCommitted, LOST),
        (OPEN, PartitionDeleted, LOST),
        (OPEN, Restored, LOST),
    ),
)

CLEAR: Final = Machine(
    "A clear",
    "A clear takes all its rows along: they are CLEARING while it is pending.",
    {
        PENDING: ("pending", "Its rows are hidden, and whoever planned it deletes their bytes."),
        COMMITTED: ("committed", "Its rows are gone."),
        ABORTED: ("aborted", "Its rows are live again."),
    },
    (
        (None, ClearPlanned, PENDING),
        (PENDING, ClearCommitted, COMMITTED),
        (PENDING, PartitionDeleted, COMMITTED),
        (PENDING, ClearAborted, ABORTED),
    ),
)

MACHINES: Final = (ROW, TASK, LEASE, CLEAR)
