"""The single-controller flow of a GRPO step under Ray: two rollout workers, one for advantages, one actor.

The driver holds only keys and tags; each worker reads and writes for itself, all in processes of their own.
"""

import asyncio

import ray
import torch
import transfer_queue as tq
from tensordict import TensorDict
from tensordict.tensorclass import NonTensorStack

from .log import Log

PROMPTS, ANSWERS, STEPS = 3, 2, 2


@ray.remote(num_cpus=0.1)
class Rollout:
    """Answers each key it is given, all at once, and writes each answer for itself."""

    def __init__(self) -> None:
        tq.init()

    async def answer(self, meta: tq.KVBatchMeta) -> tq.KVBatchMeta:
        answered = await asyncio.gather(*(self._answer(part) for part in meta.chunk(len(meta))))
        return tq.KVBatchMeta.concat(list(answered))

    async def _answer(self, meta: tq.KVBatchMeta) -> tq.KVBatchMeta:
        prompt = await tq.async_kv_batch_get_by_meta(meta, select_fields="messages")
        number = prompt["messages"][0]["number"]
        response = torch.arange(number + 1) + 100 * number
        fields = {
            "input_ids": torch.cat([torch.tensor([number]), response]).unsqueeze(0),
            "responses": response.unsqueeze(0),
            "response_mask": torch.ones(1, number + 1),
            "rm_scores": torch.tensor([[float(number % 3)]]),
        }
        tag = {"status": "success", "seq_len": number + 2}
        return await tq.async_kv_put(meta.keys[0], meta.partition_id, fields=TensorDict(fields, batch_size=1), tag=tag)


@ray.remote(num_cpus=0.1)
class Advantage:
    """Group-normalised rewards: the mean of a prompt's answers is subtracted."""

    def __init__(self) -> None:
        tq.init()

    def compute(self, meta: tq.KVBatchMeta) -> tq.KVBatchMeta:
        scores = tq.kv_batch_get_by_meta(meta, select_fields="rm_scores")["rm_scores"]
        groups = torch.stack(list(scores)).reshape(-1, ANSWERS)
        advantages = (groups - groups.mean(dim=1, keepdim=True)).reshape(-1, 1)
        fields = TensorDict({"advantages": advantages}, batch_size=len(meta))
        return tq.kv_batch_put(meta.keys, meta.partition_id, fields=fields)


@ray.remote(num_cpus=0.1)
class Actor:
    """Reads complete samples and gives back what it was trained on."""

    def __init__(self) -> None:
        tq.init()

    def update(self, meta: tq.KVBatchMeta) -> dict[str, list[float]]:
        data = tq.kv_batch_get_by_meta(meta, select_fields=["input_ids", "responses", "response_mask", "advantages"])
        rows = zip(meta.keys, data["input_ids"], data["responses"], data["advantages"], strict=True)
        return {key: [*ids.tolist(), *answer.tolist(), *gain.tolist()] for key, ids, answer, gain in rows}


def single_controller(log: Log) -> None:
    """Two steps of prompts, rollout, advantages, update, clear."""
    rollouts = [Rollout.remote() for _ in range(2)]
    advantage, actor = Advantage.remote(), Actor.remote()
    for step in range(STEPS):
        partition = f"train@{step}"
        keys = [f"{prompt}_{answer}" for prompt in range(PROMPTS) for answer in range(ANSWERS)]
        messages = NonTensorStack(*[{"role": "user", "number": step + row} for row in range(len(keys))])
        prompts = TensorDict({"messages": messages}, batch_size=len(keys))
        meta = tq.kv_batch_put(keys, partition, fields=prompts, tags=[{"status": "pending"}] * len(keys))
        parts = [worker.answer.remote(part) for worker, part in zip(rollouts, meta.chunk(2), strict=True)]
        meta = tq.KVBatchMeta.concat(ray.get(parts))
        log.see(f"{step}: tags", tq.kv_list(partition)[partition])
        log.see(f"{step}: answered", meta)
        meta = ray.get(advantage.compute.remote(meta))
        log.see(f"{step}: advantages", meta)
        log.see(f"{step}: trained", ray.get(actor.update.remote(meta)))
        tq.get_client().clear_partition(partition)
        log.see(f"{step}: partitions", tq.get_client().get_partition_list())
    for worker in (*rollouts, advantage, actor):
        ray.kill(worker)
