"""How weights get from the trainer to the other processes: a partition with one sample for each version.

A version is a sample like any other: its bytes go to the storage, and then the service tells that they are there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from crew.clearing import finish
from crew.desk import INCLUDE, Desk, Sample, fetch, write
from crew.storage import MissingBytes

from .job import POLICY, WEIGHTS
from .policy import Policy, load_vector, to_vector

# That of the reference policy: it is never cleared.
FIRST = 0
WAIT_S = 1.0
NONE_YET = -1


def version_of(custom_meta: Mapping[str, Any] | None) -> int:
    """Of weights, or of those that wrote an answer; NONE_YET where it does not say."""
    return int((custom_meta or {}).get("weight_version", NONE_YET))


async def publish(desk: Desk, policy: Policy, version: int) -> None:
    """Put the weights of a version; put again they are the same."""
    name = f"v{version}"
    sample = Sample(name, name, {POLICY: to_vector(policy).numpy()}, {"weight_version": version})
    await write(desk, desk.tally(WEIGHTS), WEIGHTS, [sample])


async def clear_before(desk: Desk, version: int) -> None:
    """Clear older versions, but for the first."""
    where = [
        {"path": "weight_version", "op": "<", "value": version},
        {"path": "weight_version", "op": ">", "value": FIRST},
    ]
    await finish(desk, await desk.client.plan_clear(WEIGHTS, all_rows=True, where=where))


@dataclass(slots=True)
class Follower:
    """A policy that takes published weights. `version`: the one that it has."""

    desk: Desk
    policy: Policy
    version: int = NONE_YET
    _revision: int = 0

    async def take(self, choose: Callable[[list[int]], int] = max) -> None:
        """Take the newest weights, or others that are there; wait for them while there are none."""
        while not await self._has_taken(choose):
            await self.wait()

    async def wait(self) -> None:
        """Return when there is a change of the weights, or after a while."""
        await self.desk.client.partition(WEIGHTS, revision=self._revision, wait_s=WAIT_S)

    async def _has_taken(self, choose: Callable[[list[int]], int]) -> bool:
        batch = await self.desk.client.read(WEIGHTS, fields=[POLICY], include=INCLUDE)
        self._revision = batch.revision
        ready = [row for row, status in enumerate(batch.production_status) if status]
        versions = [version_of(meta) for meta in batch.select_samples(ready).custom_meta or ()]
        if not versions:
            return False
        version = choose(versions)
        if version == self.version:
            return True
        wanted = batch.select_samples([ready[versions.index(version)]])
        try:
            weights = fetch(self.desk, self.desk.tally(WEIGHTS), wanted, (POLICY,))[POLICY][0]
        except MissingBytes:  # cleared since, and so there are newer ones
            return False
        load_vector(self.policy, torch.from_numpy(weights.copy()))
        self.version = version
        return True
