"""What all routes share, made once when the service starts."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal

from core.operations.claim_request import ClaimRequest
from core.reading.batch import View
from core.reading.selectors import Selector
from core.runtime.executor import Executor
from core.samplers import Sampler
from core.state.cells.signatures import Memo

from .settings import Settings
from .snapshots.checkpoints import Checkpoints


@dataclass(slots=True)
class Edge:
    """What all routes share: the executor, the settings, this boot's id, checkpoints, samplers, who waits."""

    executor: Executor
    settings: Settings
    device: str
    durability: Literal["memory", "wal", "replicated"]
    boot: str
    started_at: float
    checkpoints: Checkpoints
    samplers: Mapping[str, type[Sampler]] = field(default_factory=dict)
    waiting: dict[str, int] = field(default_factory=dict)
    # What claims ask for, by the identity of a body that is decoded once, which it holds, and by task.
    asked: Memo[tuple[int, str], tuple[object, ClaimRequest]] = field(default_factory=Memo)
    # The same for reads that name no rows.
    asked_reads: Memo[int, tuple[object, tuple[Selector, View]]] = field(default_factory=Memo)
    # One thread: each more is one more that the loop waits for when it wants the interpreter.
    decoding: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "decode"))
