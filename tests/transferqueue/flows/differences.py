"""Where batchmeta answers a flow otherwise than TransferQueue, and why that is the better answer. All else is equal."""

from typing import Any, NamedTuple

from .table import NOTHING_RAISED


class Difference(NamedTuple):
    """What each plane sees at one step, as plain values."""

    theirs: Any
    ours: Any
    why: str


# By storage backend (ANY: by whatever backend), flow and step. A row that is not needed any more fails the test too.
ANY = ""
DIFFERENCES: dict[tuple[str, str, str], Difference] = {
    (ANY, "keys: wrong use", "field not there"): Difference(
        NOTHING_RAISED, "ValueError", "who misspells a field learns of it; theirs returns data without the field"
    ),
    (ANY, "async: a loop per call", "left behind"): Difference(
        ["awaited"], [], "a partition is cleared also when no row is left in it; theirs stays for good"
    ),
    ("Yuanrong", "async: a loop per call", "clear of an emptied partition"): Difference(
        "RuntimeError", NOTHING_RAISED, "a partition without rows has no bytes to delete, so there is nothing to refuse"
    ),
    (ANY, "groups", "no whole groups, too few rows"): Difference(
        NOTHING_RAISED, "RuntimeError", "a wrong batch size is refused at once, not first when enough rows are there"
    ),
    (ANY, "torn groups", "claim"): Difference(
        [1, 2], [], "answers of two prompts are no group, though their indexes follow each other"
    ),
}


def split(
    backend: str, flow: str, theirs: dict[str, Any], ours: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both logs without the steps that are listed, after these were compared with the list."""
    for (storage, of, step), listed in DIFFERENCES.items():
        if of == flow and storage in (ANY, backend):
            assert (theirs.pop(step), ours.pop(step)) == (listed.theirs, listed.ours), f"{step}: {listed.why}"
    return theirs, ours
