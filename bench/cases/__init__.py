"""What is measured, one file a case, in the order in which they run: those against a peer first."""

from ..outcome import Case
from . import (
    claims,
    delete,
    devices,
    end_to_end,
    equality,
    executor,
    generate,
    hold,
    loop,
    memory,
    parked,
    puts,
    reads,
    request,
    restart,
    shape,
    soak,
    waiting,
)

CASES: tuple[Case, ...] = (
    equality.CASE,
    generate.CASE,
    request.CASE,
    end_to_end.CASE,
    puts.CASE,
    claims.CASE,
    delete.CASE,
    shape.CASE,
    loop.CASE,
    parked.CASE,
    waiting.CASE,
    memory.CASE,
    executor.CASE,
    reads.CASE,
    hold.CASE,
    restart.CASE,
    soak.CASE,
    devices.CASE,
)
