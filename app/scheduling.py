"""Lets the event loop go first: before the other threads of its process and, where allowed, before the whole machine.

A machine that is busy lets a thread that wakes wait for its turn, milliseconds each; figures in decision 0007.
"""

import os
import sys

SLICE_S = 0.0005


def share_the_interpreter() -> None:
    """A thread that wants the interpreter gets it within half a millisecond, above all the loop (Python: five)."""
    sys.setswitchinterval(SLICE_S)


def go_first() -> bool:
    """Give the calling thread, not those that it starts, the lowest real-time priority (sched(7), SCHED_RR).

    The loop works for fractions of a millisecond at a time. False where the system has no such thing, or says no: it
    takes CAP_SYS_NICE or an RLIMIT_RTPRIO of 1.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except (AttributeError, OSError):
        return False
    return True
