"""Which layer of the service a stack belongs to, and the share of each layer in the samples of a run.

A sample is one line of py-spy's `raw` format: frames from the root to the leaf, then how often they were seen. A Python
frame reads `name (file:line)` with a file of Python; others are C. The frame nearest to the leaf that has a rule
decides, so that code which several layers use (`core/state`, numpy) counts for whoever called it.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

LAYERS = ("socket", "HTTP", "decode", "hop", "check", "apply", "render", "append", "reply", "other")
OTHER = "other"
# What is no layer's work: a thread has nothing to do, or has, and waits for the other one to give the interpreter up.
IDLE, LOCKED = "idle", "waits for the interpreter"

# File, function ("" is any) and layer; the first rule that fits counts. Files of ours are given from the checkout.
RULES: tuple[tuple[str, str, str], ...] = (
    ("app/snapshots/", "", IDLE),  # for a process beside the service
    ("app/memory.py", "", OTHER),
    ("uvicorn/protocols/", "RequestResponseCycle.send", "reply"),
    ("app/direct.py", "Direct._answered", "reply"),
    ("app/direct.py", "Direct._send", "reply"),
    ("app/incoming.py", "Incoming.send", "reply"),
    ("app/incoming.py", "names", "reply"),
    ("app/reply.py", "Reply.add_headers", "reply"),
    ("app/incoming.py", "Incoming._submit", "hop"),
    ("app/pieces.py", "", "decode"),
    ("app/one_row_body.py", "", "decode"),
    ("app/contract.py", "_body_decoder.<locals>.decode", "decode"),
    ("app/contract.py", "_query_decoder.<locals>.decode", "decode"),
    ("app/convert.py", "", "decode"),
    ("app/reply.py", "", "render"),
    ("_render.py", "", "render"),
    ("core/reading/batch.py", "", "render"),
    ("core/reading/sliced_batch.py", "", "render"),
    ("core/runtime/journal_writer.py", "", "append"),
    ("core/journal/", "", "append"),
    ("core/runtime/", "", "hop"),
    ("core/apply/", "", "apply"),
    ("core/engine.py", "", "apply"),
    ("core/operations/", "", "check"),
    ("core/writing/", "", "check"),
    ("core/reading/", "", "check"),
    ("core/samplers/", "", "check"),
    ("app/", "", "HTTP"),
    ("uvicorn/protocols/", "", "HTTP"),
    ("starlette/", "", "HTTP"),
    ("fastapi/", "", "HTTP"),
    ("asyncio/runners.py", "", "socket"),  # the loop itself, between its callbacks
)
# Where a thread waits for work.
WAITS = frozenset({"EngineThread._first_job", "Condition.wait", "_worker", "epoll_pwait", "epoll_wait"})
# Python takes and hands over the lock of its interpreter by these.
LOCK_CALLS = frozenset({"pthread_cond_timedwait", "pthread_cond_wait"})
SYSTEM_CALLS = frozenset({"read", "recv", "write", "writev", "send", "sendmsg"})
_FRAME = re.compile(r"(.*) \((.*?)(?::\d+)?\)")


@dataclass(frozen=True, slots=True)
class Stack:
    """One stack, the root first, the layer it belongs to, and how many samples had it."""

    frames: tuple[str, ...]
    layer: str
    samples: int


def stacks(raw: str) -> list[Stack]:
    """All stacks in the text of a `raw` file."""
    lines = (line.rpartition(" ") for line in raw.splitlines())
    return [_stack(tuple(text.split(";")), int(samples)) for text, _, samples in lines if text]


def count(found: Iterable[Stack]) -> Counter[str]:
    """Samples by layer, IDLE and LOCKED too."""
    samples: Counter[str] = Counter()
    for stack in found:
        samples[stack.layer] += stack.samples
    return samples


def shares(samples: Counter[str]) -> dict[str, float]:
    """Percent of each layer in the samples of threads at work; all zero if there are none."""
    total = sum(samples[layer] for layer in LAYERS)
    return {layer: 100 * samples[layer] / max(1, total) for layer in LAYERS}


def _stack(frames: tuple[str, ...], samples: int) -> Stack:
    return Stack(frames, layer_of(frames), samples)


def layer_of(frames: tuple[str, ...]) -> str:
    """One of LAYERS, or IDLE, or LOCKED."""
    named = [_named(frame) for frame in reversed(frames)]
    native = next((at for at, (_, file) in enumerate(named) if _is_python(file)), len(named))
    calls = [name for name, _ in named[:native]]
    if not LOCK_CALLS.isdisjoint(calls):
        return LOCKED
    if not WAITS.isdisjoint([*calls, *(name for name, _ in named[native : native + 1])]):
        return IDLE
    layer = next((rule for name, file in named[native:] if (rule := _rule(name, file))), OTHER)
    is_call = bool(calls) and calls[0] in SYSTEM_CALLS
    return "socket" if is_call and layer in ("HTTP", "reply") else layer


def _named(frame: str) -> tuple[str, str]:
    """(function, file); of a frame without a file, its text and ""."""
    found = _FRAME.fullmatch(frame)
    return (found[1], found[2]) if found else (frame, "")


def _is_python(file: str) -> bool:
    return file.endswith(".py") or file.startswith("<")


def _rule(name: str, file: str) -> str | None:
    return next((layer for part, function, layer in RULES if part in file and function in ("", name)), None)
