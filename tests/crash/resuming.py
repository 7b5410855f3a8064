"""A trainer, its rollouts and its dataloader, that go back to a checkpoint together with the service. No test here.

All that lives in the trainer's own checkpoint is in `Progress`: which samples were trained, which prompts were read.
"""

import copy
import random
from collections import Counter
from dataclasses import dataclass, field

from batchmeta import AsyncClient

GROUP, GROUPS = 2, 3
NAME, TASK, WORKER = "train", "actor", "trainer"
ANSWER = {"ids": {"dtype": "int64", "shape": [8]}}
REWARD = {"reward": {"dtype": "float32", "shape": []}}
SAMPLER = {"name": "grpo_group", "n_samples_per_prompt": GROUP}


def keys_of(prompt: int) -> list[str]:
    return [f"{prompt}_{answer}" for answer in range(GROUP)]


@dataclass
class Progress:
    """`trained` by key, in order; `read`: prompts that the dataloader gave out."""

    trained: list[str] = field(default_factory=list)
    read: int = 0


@dataclass
class Run:
    """One training run of `prompts` prompts; `forgotten`: samples trained, and lost with what came after a save.

    `clears`: how probable it is that a step clears some of what was trained.
    """

    prompts: int
    chance: random.Random
    progress: Progress = field(default_factory=Progress)
    saved: dict[str, Progress] = field(default_factory=dict)
    clears: float = 0.4
    made: int = 0
    forgotten: int = 0

    @property
    def is_over(self) -> bool:
        return len(self.progress.trained) == self.prompts * GROUP

    def account(self) -> Counter[str]:
        """How often each sample was trained."""
        return Counter(self.progress.trained)

    def meant(self) -> Counter[str]:
        """What a run without faults comes to."""
        return Counter(key for prompt in range(self.prompts) for key in keys_of(prompt))

    async def save(self, client: AsyncClient) -> None:
        """Both under one name; the trainer's counts once the service has its own."""
        self.made += 1
        name = f"save-{self.made}"
        await client.create_checkpoint(name)
        self.saved[name] = copy.deepcopy(self.progress)

    async def go_back(self, client: AsyncClient) -> None:
        """To the last one that the trainer has."""
        name, progress = list(self.saved.items())[-1]
        self.forgotten += len(self.progress.trained) - len(progress.trained)
        self.progress = copy.deepcopy(progress)
        await client.restore_checkpoint(name, revived="unproduced")
        await client.release_worker(WORKER)

    async def step(self, client: AsyncClient) -> None:
        """Read prompts, answer and reward what lacks it, train on what is complete, clear what was trained."""
        await self._read(client)
        await self._produce(client)
        await self._train(client)
        if self.chance.random() < self.clears:
            await self._clear(client)

    async def _read(self, client: AsyncClient) -> None:
        prompts = range(self.progress.read, min(self.prompts, self.progress.read + self.chance.randint(1, GROUPS)))
        keys = [key for prompt in prompts for key in keys_of(prompt)]
        if keys:
            groups = [str(prompt) for prompt in prompts for _ in range(GROUP)]
            await client.insert(NAME, keys=keys, group_ids=groups)
            self.progress.read = prompts.stop

    async def _produce(self, client: AsyncClient) -> None:
        """The answer of some, and the reward of some others: groups are often incomplete."""
        for field_name, schema in (("ids", ANSWER), ("reward", REWARD)):
            batch = await client.read(NAME, include=["keys", "field_status"])
            has = (batch.field_status or {}).get(field_name, [0] * len(batch))
            lacking = [str(key) for key, there in zip(batch.keys or [], has, strict=True) if not there]
            chosen = [key for key in lacking if self.chance.random() < 0.8]
            if chosen:
                await client.produce(NAME, schema, keys=chosen)

    async def _train(self, client: AsyncClient) -> None:
        claim = await client.claim(
            NAME,
            TASK,
            ["ids", "reward"],
            GROUPS * GROUP,
            min_batch_size=GROUP,
            sampler=SAMPLER,
            lease_s=600.0,
            worker=WORKER,
        )
        if claim:
            assert claim.token is not None
            self.progress.trained += [str(key) for key in claim.batch.keys or []]
            await client.ack(claim.claim_id or "", claim.token, accept="all")

    async def _clear(self, client: AsyncClient) -> None:
        """In two steps, of which the second may never come."""
        there = await client.consumption(NAME, TASK)
        consumed = [index for index, is_so in zip(there.global_indexes, there.consumption_status, strict=True) if is_so]
        if consumed:
            clear = await client.plan_clear(NAME, global_indexes=consumed[:4])
            await client.commit_clear(clear.clear_id)
