"""Hooks of the schemathesis runs: a call may wait, but not for long. Loaded by its command line, not by pytest."""

from typing import Any

import schemathesis

SHORT_S = 0.05


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """A wait that the contract allows becomes a short one; others are left, to be refused."""
    epoch = str((case.headers or {}).get("X-Epoch", ""))
    if epoch.isdigit() and epoch.isascii():  # almost none is the right one, and nothing else of the call would be tried
        del case.headers["X-Epoch"]
    for members in (case.body, case.query):
        wait = members.get("wait_s") if isinstance(members, dict) else None
        if isinstance(wait, int | float) and not isinstance(wait, bool) and SHORT_S < wait <= 60:
            members["wait_s"] = SHORT_S
