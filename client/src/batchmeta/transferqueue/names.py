"""Partition and task names of TransferQueue as names of the service, and back (contract#names).

The service's names hold no `/`, `\\` or control characters; these and `%` are written as `%` and two hex digits. The
partitions of a job are named `job~partition`.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import unquote

from .errors import BadSetting

SEPARATOR = "~"
_RESERVED = re.compile(r"[%/\\\x00-\x1f\x7f-\x9f]")
_FIELD_RESERVED = re.compile(r"[,\x00-\x1f\x7f-\x9f]")
LONGEST = 200


@lru_cache(1024)
def name_of(theirs: str) -> str:
    """The service's name. BadSetting for what no name can be made of, before anything is written."""
    if not isinstance(theirs, str):
        raise BadSetting(f"a partition or task is named by text, not by {theirs!r}")
    if theirs in (".", ".."):
        return theirs.replace(".", "%2E")
    name = _RESERVED.sub(_escaped, theirs)
    if not 1 <= len(name) <= LONGEST:
        raise BadSetting(f"{theirs[:40]!r}: the name must have 1 to {LONGEST} characters, it has {len(name)}")
    return name


def theirs_of(name: str) -> str:
    """TransferQueue's name of a service's name."""
    return unquote(name) if "%" in name else name


def check_fields(names: Iterable[str]) -> None:
    """BadSetting for names of fields that the service would refuse once their bytes are written."""
    for name in names:
        if not isinstance(name, str) or not 1 <= len(name) <= LONGEST or _FIELD_RESERVED.search(name):
            raise BadSetting(f"field {name!r}: a field's name has 1 to {LONGEST} characters, no comma, none of control")


def _escaped(found: "re.Match[str]") -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode())
