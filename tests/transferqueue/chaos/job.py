"""A GRPO job in small: rollout workers write one answer per key, a driver claims, reads and trains each answer once.

Who is to be killed is killed at a named place, so each run is the same: a rollout worker kills itself where the bytes
of an answer are stored and the service is not told; a storage unit is killed between two calls of the driver.
"""

import itertools
import os
import signal
from collections.abc import Callable
from time import perf_counter
from typing import Any

import ray
import torch
import transfer_queue as tq
from tensordict import TensorDict

from batchmeta.transferqueue import finish_clears

PARTITION, TASK, FIELD = "train", "actor_update", "responses"
BATCH = 4
UNIT = "TransferQueueStorageUnit#{}"


def answer_to(key: str) -> torch.Tensor:
    """The answer that a rollout worker writes for a key, and that must be read."""
    number = int(key.removeprefix("k"))
    return torch.arange(number % 5 + 1) + 100 * number


@ray.remote(num_cpus=0.1, max_restarts=0)
class Rollout:
    """Answers keys, one put after the other."""

    def __init__(self) -> None:
        tq.init()

    def dies_at(self, report: int) -> None:
        """Kill itself instead of making this report of stored data, counted from 1."""
        manager, numbers = tq.get_client().storage_manager, itertools.count(1)
        reported = manager.notify_data_update

        async def notify_data_update(*arguments: Any, **named: Any) -> None:
            if next(numbers) == report:
                os.kill(os.getpid(), signal.SIGKILL)
            await reported(*arguments, **named)

        manager.notify_data_update = notify_data_update

    def roll(self, keys: list[str]) -> None:
        """Write the answers."""
        for key in keys:
            fields = TensorDict({FIELD: answer_to(key).unsqueeze(0)}, batch_size=1)
            tq.kv_put(key, PARTITION, fields=fields, tag={"status": "success"})


class Job:
    """The driver. `longest_s`: the longest of the calls that it made, in seconds."""

    def __init__(self) -> None:
        self.longest_s = 0.0

    def roll(self, keys: list[str], workers: int = 2, dies_at: int | None = None) -> dict[str, Any]:
        """New workers take the keys in turn; the first of them dies where it is told to. What is still to do."""
        rollouts = [Rollout.remote() for _ in range(workers)]
        if dies_at is not None:
            ray.get(rollouts[0].dies_at.remote(dies_at))
        shares = [worker.roll.remote(keys[first::workers]) for first, worker in enumerate(rollouts)]
        dead = [first for first, share in enumerate(shares) if self._is_dead(share)]
        for worker in rollouts:
            ray.kill(worker)
        listed = self._timed(lambda: tq.kv_list(PARTITION)).get(PARTITION, {})
        done = [key for key, tag in listed.items() if tag.get("status") == "success"]
        return {"dead": dead, "left": [key for key in keys if key not in done], "known": sorted(listed)}

    def _is_dead(self, share: ray.ObjectRef) -> bool:
        try:
            self._timed(lambda: ray.get(share))
        except ray.exceptions.RayActorError:
            return True
        return False

    def train(self, most: int) -> dict[str, Any]:
        """Claim until nothing is left or `most` answers were claimed, and read each. What could not be read is lost."""
        trained: list[str] = []
        lost: dict[str, str] = {}
        while len(trained) + len(lost) < most:
            meta = self._timed(lambda: tq.get_client().get_meta([FIELD], BATCH, PARTITION, task_name=TASK))
            if meta.size == 0:
                break
            keys = tq.get_client().kv_retrieve_keys(meta.global_indexes, PARTITION)
            for place, key in enumerate(keys):
                error = self._read(meta.select_samples([place]), key)
                lost |= {} if error is None else {key: error}
                trained += [key] if error is None else []
        return {"trained": trained, "lost": lost}

    def _read(self, meta: tq.BatchMeta, key: str) -> str | None:
        try:
            data = self._timed(lambda: tq.get_client().get_data(meta))
        except RuntimeError as error:
            return type(error).__name__
        if data[FIELD][0].tolist() != answer_to(key).tolist():
            raise ValueError(f"the answer of {key} is {data[FIELD][0]}")
        return None

    def kill_unit(self, number: int) -> None:
        """SIGKILL to a storage unit."""
        unit = ray.get_actor(UNIT.format(number))
        os.kill(ray.get(unit.__ray_call__.remote(lambda _: os.getpid())), signal.SIGKILL)

    def clear(self, keys: list[str]) -> list[str]:
        """Clear these keys; those that are listed then."""
        self._timed(lambda: tq.kv_clear(keys, PARTITION))
        return sorted(self._timed(lambda: tq.kv_list(PARTITION)).get(PARTITION, {}))

    def finish(self) -> int:
        """Finish clears that could not be finished before; how many."""
        return int(self._timed(finish_clears))

    def _timed(self, call: Callable[[], Any]) -> Any:
        began = perf_counter()
        try:
            return call()
        finally:
            self.longest_s = max(self.longest_s, perf_counter() - began)
