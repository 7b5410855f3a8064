"""A flow of checkpoints: what was saved comes back as it was, and what came after is gone."""

import tempfile
from pathlib import Path

import transfer_queue as tq

from .data import pair
from .log import Log

PARTITION = "saved"


def save_and_load(log: Log) -> None:
    """Keys, tags, data and consumption go back to the state of the save."""
    client = tq.get_client()
    tq.kv_batch_put(["a", "b"], PARTITION, fields=pair(0, 2), tags=[{"n": 1}, {"n": 2}])
    client.get_meta(["input_ids"], 1, PARTITION, task_name="train")
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "step_1"
        tq.save_checkpoint(checkpoint, metadata={"step": 1})
        tq.kv_put("a", PARTITION, tag={"n": 9})
        tq.kv_put("c", PARTITION, fields=pair(5, 1), tag={"n": 3})
        client.get_meta(["input_ids"], 1, PARTITION, task_name="train")
        log.see("before load", tq.kv_list(PARTITION))
        tq.load_checkpoint(checkpoint)
        log.refused("load of nothing", lambda: tq.load_checkpoint(Path(folder) / "never"))
    log.see("after load", tq.kv_list(PARTITION))
    log.see("data", tq.kv_batch_get(["a", "b"], PARTITION))
    log.see("consumed", client.get_consumption_status("train", PARTITION)[1])
    log.see("put after load", tq.kv_put("d", PARTITION, fields=pair(6, 1), tag={"n": 4}))
    log.see("list", tq.kv_list(PARTITION))
    client.clear_partition(PARTITION)
