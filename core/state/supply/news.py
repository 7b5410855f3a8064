"""What happened in a partition since its waiting calls were last looked at, and what a waiting claim lacks.

Together they say whom to look at: a claim that lacks 8 rows cannot be served before 8 rows came, whatever else changes.
"""

from dataclasses import dataclass, field

from core.arrays import Ints
from core.state.where import Where

ANY = -1  # the bits of every field


@dataclass(frozen=True, slots=True)
class Lack:
    """What must happen before a waiting claim can be served: so many `rows` become ready for all of `fields` (sorted)
    and fulfil `where`, or their custom meta or group becomes another. Or its task gives rows back or has none left, or
    something happens that may be of interest to every claim. Without `fields` it waits for that alone.

    `follows`: it is to be looked at also when its task takes rows.
    """

    task: str
    fields: tuple[str, ...]
    where: Where | None
    rows: int
    follows: bool = False


@dataclass(slots=True)
class News:
    """`rows`: those that got fields of `bits`, or other custom meta or a group (ANY). `gave`, `took`: tasks that gave
    rows back, or took some. `is_general`: something else, which may be of interest to whoever waits.
    """

    is_general: bool = True
    bits: int = 0
    rows: list[Ints] = field(default_factory=list)
    gave: set[str] = field(default_factory=set)
    took: set[str] = field(default_factory=set)
