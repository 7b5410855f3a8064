"""The flows by name, in their order: those of one configuration follow each other, as each is a start of TransferQueue.

Names alone, so that the tests can be listed where TransferQueue is not installed.
"""

from collections.abc import Mapping
from typing import NamedTuple

# What a flow sees where an error was asked for and none came.
NOTHING_RAISED = "nothing was raised"


class Flow(NamedTuple):
    """A function of a module in this folder, and the configuration that it runs with (child.py has them).

    `forks`: it forks a process that reads. openYuanrong's client hangs now and then in a forked process, whichever the
    controller, so such a flow runs with SimpleStorage alone.
    """

    module: str
    function: str
    controller: str = "sequential"
    forks: bool = False


FLOWS: Mapping[str, Flow] = {
    "put, get, clear": Flow("basic", "put_get_clear"),
    "statuses": Flow("basic", "statuses"),
    "growth": Flow("basic", "growth"),
    "clear of samples": Flow("basic", "clear_samples"),
    "kinds of values": Flow("basic", "value_kinds"),
    "wrong use": Flow("basic", "wrong_use"),
    "expected rows": Flow("basic", "expected"),
    "keys: tutorial": Flow("keyed", "tutorial"),
    "keys: tags alone": Flow("keyed", "tags_alone"),
    "keys: polling": Flow("keyed", "polling"),
    "keys: by meta": Flow("keyed", "by_meta"),
    "keys: wrong use": Flow("keyed", "wrong_use"),
    "custom meta": Flow("meta", "custom_meta"),
    "two partitions": Flow("meta", "two_partitions"),
    "async: at once": Flow("awaited", "at_once"),
    "async: a loop per call": Flow("awaited", "loop_per_call"),
    "async: low level": Flow("awaited", "low_level"),
    "checkpoints": Flow("checkpoints", "save_and_load"),
    "single controller": Flow("grpo", "single_controller"),
    "groups": Flow("sampled", "groups", "polling"),
    "torn groups": Flow("sampled", "torn_groups", "polling"),
    "ranks": Flow("sampled", "ranks", "polling"),
    "stream: members of ranks": Flow("streaming", "members_of_ranks", "polling"),
    "stream: loader": Flow("streaming", "loader", "polling"),
    "stream: loader with workers": Flow("streaming", "loader_with_workers", "polling", forks=True),
    "balanced": Flow("sampled", "balanced", "polling"),
}
