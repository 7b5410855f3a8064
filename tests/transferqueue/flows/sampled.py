"""Flows of claims that a sampler decides: whole groups, ranks that share their batches, balanced lengths."""

import transfer_queue as tq

from .controller import new_client, register
from .data import pair, tokens
from .log import Log

FIELDS = ["input_ids"]
PARTITION = "sampled"


def groups(log: Log) -> None:
    """GRPOGroupNSampler(2): only whole prompts are given out; in polling mode too little is an empty batch."""
    client = tq.get_client()
    put = client.put(data=pair(0, 6), partition_id=PARTITION)
    log.see_rows("put", put.global_indexes)
    for step, rows in (("first", [2, 3]), ("second", [0, 5]), ("third", [1])):
        client.put(data=tokens(3, len(rows), name="reward"), metadata=put.select_samples(rows))
        claimed = client.get_meta(["input_ids", "reward"], 2, PARTITION, task_name="train")
        log.see_rows(f"claim after the {step} put", claimed.global_indexes)
    log.see("claim of nothing left", client.get_meta(["input_ids", "reward"], 2, PARTITION, task_name="train").size)
    for rows, task in (("enough", "odd"), ("too few", "train")):
        log.refused(
            f"no whole groups, {rows} rows", lambda task=task: client.get_meta(FIELDS, 3, PARTITION, task_name=task)
        )
    log.see_rows("claim of another task", client.get_meta(FIELDS, 4, PARTITION, task_name="eval").global_indexes)
    asked = {"dp_rank": 0, "batch_index": 0, "task_name": "ranks", "partition_id": PARTITION}
    for member in ("one", "other"):
        claimed = client.get_meta(FIELDS, 2, PARTITION, task_name="ranks", sampling_config=asked)
        log.see_rows(f"the {member} member of rank 0", claimed.global_indexes)
    log.see("claim of a partition not there", client.get_meta(FIELDS, 2, "never was", task_name="train").size)
    for partition in (PARTITION, "never was"):
        client.clear_partition(partition)


def torn_groups(log: Log) -> None:
    """Two rows that are neighbours, but of two prompts, are no group."""
    client = tq.get_client()
    put = client.put(data=pair(0, 4), partition_id=PARTITION)
    log.see_rows("put", put.global_indexes)
    client.put(data=tokens(3, 2, name="reward"), metadata=put.select_samples([1, 2]))
    claimed = client.get_meta(["input_ids", "reward"], 2, PARTITION, task_name="train")
    log.see_rows("claim", claimed.global_indexes)
    client.clear_partition(PARTITION)


def ranks(log: Log) -> None:
    """RankAwareSampler: members of a rank get the same rows of a batch, other ranks get others."""
    register(tq.RankAwareSampler())
    client = new_client()
    client.put(data=pair(0, 8), partition_id=PARTITION)

    def claim(rank: int, batch: int) -> list[int]:
        asked = {"dp_rank": rank, "batch_index": batch, "task_name": "train", "partition_id": PARTITION}
        indexes: list[int] = client.get_meta(
            FIELDS, 2, PARTITION, task_name="train", sampling_config=asked
        ).global_indexes
        return indexes

    for rank, batch in ((0, 0), (1, 0), (0, 0), (0, 1), (1, 0), (1, 1), (0, 1), (1, 2), (0, 0)):
        log.see_rows(f"step {len(log.steps)}: rank {rank}, batch {batch}", claim(rank, batch))
    log.see("is consumed", client.check_consumption_status("train", PARTITION))
    client.clear_partition(PARTITION)
    client.close()


def balanced(log: Log) -> None:
    """SeqlenBalancedSampler, registered later: new clients get batches of about equal lengths."""
    register(tq.SeqlenBalancedSampler(n_samples_per_prompt=2, dp_size=2))
    client = new_client()
    put = client.put(data=pair(0, 8), partition_id=PARTITION)
    put.update_custom_meta([{"total_lengths": length} for length in (900, 100, 400, 380, 500, 20, 10, 640)])
    client.set_custom_meta(put)
    for rank in (0, 1, 0):
        asked = {"dp_rank": rank, "batch_index": 0, "task_name": "train", "partition_id": PARTITION}
        meta = client.get_meta(FIELDS, 4, PARTITION, task_name="train", sampling_config=asked)
        log.see(f"step {len(log.steps)}: rank {rank}", [each["total_lengths"] for each in meta.custom_meta])
    client.clear_partition(PARTITION)
    client.close()
