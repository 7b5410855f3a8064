"""Flows of the key-value interface: keys, tags, polling of the list, clears."""

import transfer_queue as tq

from .data import pair, tokens
from .log import Log

PARTITION = "keyed"


def tutorial(log: Log) -> None:
    """TransferQueue's second tutorial: put, add a field, tag, list, read, clear."""
    log.see("put", tq.kv_put("0_0", PARTITION, fields=pair(0, 1), tag={"steps": 0, "status": "running"}))
    keys = ["1_0", "1_1", "1_2", "2_0"]
    tags = [{"steps": 1, "status": "running"} for _ in keys]
    log.see("batch put", tq.kv_batch_put(keys, PARTITION, fields=pair(1, 4), tags=tags))
    finished = [{"status": "finish"} for _ in range(2)]
    log.see(
        "new field", tq.kv_batch_put(["1_1", "2_0"], PARTITION, fields=tokens(7, 2, name="response"), tags=finished)
    )
    log.see("tag alone", tq.kv_put("0_0", PARTITION, tag={"status": "finish", "note": None}))
    log.see("list of all", tq.kv_list())
    log.see("order of keys", list(tq.kv_list(PARTITION)[PARTITION]))
    log.see("one field", tq.kv_batch_get(["2_0", "0_0"], PARTITION, select_fields="input_ids"))
    log.see("what all have", tq.kv_batch_get(["0_0", *keys], PARTITION))
    log.see("what two have", tq.kv_batch_get(["2_0", "1_1"], PARTITION))
    log.see("one key", tq.kv_batch_get("1_2", PARTITION))
    tq.kv_clear(["0_0", "1_1"], PARTITION)
    log.see("after clear", tq.kv_list(PARTITION))
    log.see("read after clear", tq.kv_batch_get(["1_0", "2_0"], PARTITION, select_fields="input_ids"))
    tq.kv_clear("1_0", PARTITION)
    tq.get_client().clear_partition(PARTITION)
    log.see("list in the end", tq.kv_list())


def tags_alone(log: Log) -> None:
    """A key may have a tag before it has data; tags are merged, member by member, None included."""
    log.see("first", tq.kv_put("a", PARTITION, tag={"status": "pending", "score": 0.5, "nested": {"x": [1, 2]}}))
    log.see("no data yet", tq.kv_list(PARTITION))
    log.refused("read of no data", lambda: tq.kv_batch_get("a", PARTITION, select_fields="input_ids"))
    log.see("second", tq.kv_put("a", PARTITION, tag={"status": None, "nested": {"y": 3}}))
    log.see("with data", tq.kv_put("a", PARTITION, fields=pair(3, 1), tag={"status": "done"}))
    log.see("without tag", tq.kv_put("a", PARTITION, fields=tokens(4, 1, name="late")))
    log.see("tags", tq.kv_list(PARTITION))
    log.see("data", tq.kv_batch_get("a", PARTITION))
    log.see("overwritten", tq.kv_put("a", PARTITION, fields=pair(8, 1)))
    log.see("new data", tq.kv_batch_get("a", PARTITION, select_fields=["input_ids"]))
    tq.get_client().clear_partition(PARTITION)


def polling(log: Log) -> None:
    """A replay buffer that polls the list, as verl's does, while keys come, change and go."""
    seen: list[object] = []
    for step in range(4):
        keys = [f"{step}_{row}" for row in range(3)]
        tq.kv_batch_put(keys, PARTITION, fields=pair(3 * step, 3), tags=[{"step": step, "status": "running"}] * 3)
        tq.kv_put(keys[step % 3], PARTITION, tag={"status": "success"})
        listed = tq.kv_list(None)[PARTITION]
        seen.append({key: tag["status"] for key, tag in listed.items()})
        done = [key for key, tag in listed.items() if tag["status"] == "success"]
        if len(done) == 2:
            seen.append(tq.kv_batch_get(done, PARTITION))
            tq.kv_clear(done, PARTITION)
    log.see("polls", seen)
    log.see("left", tq.kv_list(PARTITION))
    tq.kv_clear(list(tq.kv_list(PARTITION)[PARTITION]), PARTITION)
    log.see("emptied", tq.kv_list(PARTITION))
    log.see("put after that", tq.kv_put("new", PARTITION, fields=pair(1, 1), tag={"n": 1}))
    log.see("list after that", tq.kv_list(PARTITION))
    tq.get_client().clear_partition(PARTITION)


def by_meta(log: Log) -> None:
    """What a put returned is split, joined, sent around and read by."""
    keys = [f"k{row}" for row in range(5)]
    meta = tq.kv_batch_put(keys, PARTITION, fields=pair(0, 5), tags=[{"row": row} for row in range(5)])
    parts = meta.chunk(2)
    log.see("parts", parts)
    log.see("data of parts", [tq.kv_batch_get_by_meta(part) for part in parts])
    log.see("joined", type(meta).concat(parts))
    log.see("selected field", tq.kv_batch_get_by_meta(parts[1], select_fields="attention_mask"))
    log.see("selected keys", tq.kv_batch_get_by_meta(meta.select_keys(["k4", "k0"])))
    client = tq.get_client()
    rows = client.kv_retrieve_meta(["k3", "k1"], PARTITION)
    log.see("batch meta of keys", rows)
    log.see("keys of rows", client.kv_retrieve_keys(rows.global_indexes, PARTITION))
    log.see("some are not there", client.kv_retrieve_meta(["k0", "never", "k2"], PARTITION).custom_meta)
    client.clear_partition(PARTITION)


def wrong_use(log: Log) -> None:
    """What the key-value interface refuses, and that nothing is left of it."""
    log.refused("nothing to put", lambda: tq.kv_put("a", PARTITION))
    log.refused("fewer keys than rows", lambda: tq.kv_batch_put(["a"], PARTITION, fields=pair(0, 2)))
    log.refused("partition not there", lambda: tq.kv_batch_get("a", PARTITION))
    log.see("list of a partition not there", tq.kv_list(PARTITION))
    tq.kv_clear("a", PARTITION)
    tq.kv_batch_put(["a", "b"], PARTITION, fields=pair(0, 2), tags=[{"n": 1}, {"n": 2}])
    log.refused("key not there", lambda: tq.kv_batch_get("c", PARTITION))
    log.refused("field not there", lambda: tq.kv_batch_get("a", PARTITION, select_fields="never"))
    log.refused("fewer tags than keys", lambda: tq.kv_batch_put(["a", "b"], PARTITION, tags=[{"n": 3}]))
    tq.kv_clear(["a", "never"], PARTITION)
    log.see("after all", tq.kv_list())
    tq.get_client().clear_partition(PARTITION)
