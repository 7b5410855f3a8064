"""Flows of custom meta: set on rows of several partitions, merged, seen by all who read."""

import transfer_queue as tq

from .data import pair
from .log import Log

FIELDS = ["input_ids", "attention_mask"]


def custom_meta(log: Log) -> None:
    """Set with a put and alone; on some rows; in any order."""
    client = tq.get_client()
    put = client.put(data=pair(0, 4), partition_id="meta")
    log.see("none yet", put.get_all_custom_meta())
    put.update_custom_meta([{"uid": f"u{row}", "version": 0} for row in range(4)])
    client.set_custom_meta(put)
    meta = client.get_meta(FIELDS, 4, "meta", task_name="a")
    log.see("claimed", meta.get_all_custom_meta())
    some = meta.select_samples([2, 0])
    some.update_custom_meta([{"version": 2, "score": 0.25}, {"version": 1}])
    client.set_custom_meta(some)
    log.see("two rows changed", client.get_meta(FIELDS, 4, "meta", mode="force_fetch").get_all_custom_meta())
    some.update_custom_meta([{"by": "put"}, {"by": "put"}])
    client.put(data=pair(5, 2), metadata=some)
    log.see("changed by a put", client.get_meta(FIELDS, 4, "meta", mode="force_fetch"))
    log.see("unicode and depth", _round(client, {"text": 'ö "quoted" \n 漢', "deep": [[{}, [None, True, 1.5]]]}))
    client.clear_partition("meta")


def _round(client: tq.TransferQueueClient, value: dict[str, object]) -> object:
    meta = client.get_meta(FIELDS, 4, "meta", mode="force_fetch").select_samples([3])
    meta.update_custom_meta([value])
    client.set_custom_meta(meta)
    return client.get_meta(FIELDS, 4, "meta", mode="force_fetch").custom_meta[3]


def two_partitions(log: Log) -> None:
    """One batch meta with rows of two partitions: custom meta, data and clears find each row."""
    client = tq.get_client()
    parts = [client.put(data=pair(first, 4), partition_id=name) for first, name in ((0, "left"), (5, "right"))]
    both = tq.BatchMeta.concat(parts)
    both.update_custom_meta([{"n": row} for row in range(8)])
    client.set_custom_meta(both)
    for name in ("left", "right"):
        log.see(f"in {name}", client.get_meta(FIELDS, 4, name, mode="force_fetch"))
    client.clear_samples(both.select_samples([1, 6, 4]))
    for name in ("left", "right"):
        log.see(f"left in {name}", client.get_data(client.get_meta(FIELDS, 4, name, mode="force_fetch")))
        client.clear_partition(name)
