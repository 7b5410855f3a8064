"""What may stand in an image: a closed list of classes with all their members, but for what is derived. No pickle."""

from collections.abc import Callable
from typing import Final

from core.compression import packer
from core.events import Declared, Kept, Limits, Settings, ShareTerms
from core.state.cells.fields import CellColumn, Field
from core.state.cells.grid import Grid
from core.state.cells.json_buffer import JsonBuffer
from core.state.cells.revoked import RevokedCells
from core.state.cells.shapes import SizeTable
from core.state.cells.signatures import Memo
from core.state.clears import Clear, Clears
from core.state.deadlines import Deadlines
from core.state.groups import Groups
from core.state.kept_replies import WINDOW, Block, KeptReplies
from core.state.key_history import KeyHistory, Trail
from core.state.leases import Lease, Leases
from core.state.partition import NOWHERE, Partition
from core.state.rows import Rows
from core.state.sampler_memory import Allotment, Memory, Share
from core.state.supply.supplies import Supplies
from core.state.tasks import Task
from core.state.ttl import TimedBatch, Ttls

STRUCTS: Final = {kind.__name__: kind for kind in (Declared, Kept, Limits, Settings, ShareTerms)}
CLASSES: Final[dict[str, type]] = {
    kind.__name__: kind
    for kind in (
        Allotment, Block, CellColumn, Clear, Clears, Field, Grid, Groups, JsonBuffer, KeptReplies, KeyHistory, Lease,
        Leases, Memory, Partition, RevokedCells, Rows, Share, SizeTable, Task, TimedBatch, Trail, Ttls,
    )
}  # fmt: skip
DERIVED: Final[dict[tuple[type, str], Callable[[], object]]] = {
    (Partition, "supplies"): Supplies,
    (Partition, "_located"): lambda: NOWHERE,
    (Grid, "_placements"): Memo,
    (Grid, "_asked"): dict,
    (Field, "_heads"): dict,
    (Lease, "began"): float,
    (Lease, "deadline"): float,
    (Leases, "_deadlines"): Deadlines,
    (Leases, "over_until"): lambda: float("-inf"),
    (KeyHistory, "memo"): lambda: None,
    (KeptReplies, "_by_key"): dict,
    (KeptReplies, "_pack"): lambda: packer(WINDOW),
    (KeptReplies, "most"): int,
    (KeptReplies, "most_bytes"): int,
}
"""What is made anew instead of written."""


def members(kind: type, one: object) -> list[str]:
    """The names of all members of a class, of which `one` is an instance."""
    if hasattr(one, "__dict__"):
        return sorted(vars(one))
    return sorted(name for base in kind.__mro__ for name in getattr(base, "__slots__", ()))
