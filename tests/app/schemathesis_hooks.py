"""Hooks of the schemathesis runs: a claim may wait, but not for long. Loaded by its command line, not by pytest."""

from typing import Any

import schemathesis

SHORT_S = 0.05


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """A wait that the contract allows becomes a short one; others are left, to be refused."""
    body = case.body
    wait = body.get("wait_s") if isinstance(body, dict) else None
    if isinstance(wait, int | float) and not isinstance(wait, bool) and SHORT_S < wait <= 60:
        body["wait_s"] = SHORT_S
