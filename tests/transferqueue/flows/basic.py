"""Flows of the low-level client: put, get, meta, who consumed what, clear."""

import transfer_queue as tq

from .data import kinds, pair, ragged, tokens
from .log import Log

FIELDS = ["input_ids", "attention_mask"]


def put_get_clear(log: Log) -> None:
    """TransferQueue's first tutorial, with every status on the way."""
    client = tq.get_client()
    log.see("put", client.put(data=pair(0, 4), partition_id="basic"))
    log.see("is produced", client.check_production_status(FIELDS, "basic"))
    log.see("is consumed before", client.check_consumption_status("task", "basic"))
    meta = client.get_meta(FIELDS, 4, "basic", task_name="task")
    log.see("meta", meta)
    log.see("data", client.get_data(meta))
    log.see("one field", client.get_data(meta.select_fields(["attention_mask"])))
    log.see("some rows, reversed", client.get_data(meta.select_samples([3, 1])))
    log.see("chunks", [client.get_data(part) for part in meta.chunk(3)])
    log.see("is consumed after", client.check_consumption_status("task", "basic"))
    log.see("partitions", client.get_partition_list())
    client.clear_partition("basic")
    log.gone(meta.global_indexes)
    log.see("partitions after clear", client.get_partition_list())
    log.refused("meta after clear", lambda: client.get_meta(FIELDS, 4, "basic", mode="force_fetch"))
    client.clear_partition("basic")
    client.clear_partition("never was")


def statuses(log: Log) -> None:
    """The status tensors row by row, and consumption that is reset."""
    client = tq.get_client()
    put = client.put(data=pair(0, 3), partition_id="statuses")
    client.put(data=tokens(5, 2), partition_id="statuses")
    for name, fields in (("one field", ["input_ids"]), ("both fields", FIELDS), ("unknown field", ["nobody's"])):
        indexes, ready = client.get_production_status(fields, "statuses")
        log.see(f"ready: {name}", ready)
        log.see_rows(f"rows: {name}", [] if indexes is None else indexes.tolist())
    log.see("is produced", client.check_production_status(FIELDS, "statuses"))
    client.get_meta(FIELDS, 2, "statuses", task_name="a")
    log.see("consumed by a", client.get_consumption_status("a", "statuses")[1])
    log.see("consumed by b", client.get_consumption_status("b", "statuses")[1])
    log.see("reset", client.reset_consumption("statuses", "a"))
    log.see("consumed by a after reset", client.get_consumption_status("a", "statuses")[1])
    again = client.get_meta(FIELDS, 3, "statuses", task_name="a")
    log.see("claimed again", client.get_data(again))
    log.see("reset of all", client.reset_consumption("statuses"))
    log.see("of an unknown partition", client.get_consumption_status("a", "never was"))
    client.clear_partition("statuses")
    log.gone(put.global_indexes)


def growth(log: Log) -> None:
    """Rows and fields come later; a claim sees rows that have all it asks for, and each task sees all rows."""
    client = tq.get_client()
    first = client.put(data=pair(0, 2), partition_id="growth")
    client.put(data=pair(2, 3), partition_id="growth")
    log.see("all rows", client.get_meta(FIELDS, 5, "growth", mode="force_fetch"))
    log.see("put of a new field", client.put(data=tokens(7, 2, name="third"), metadata=first))
    both = client.get_meta(["input_ids", "third"], 2, "growth", task_name="both")
    log.see("with the new field", client.get_data(both))
    log.see("of a mixed partition", client.get_meta(["input_ids", "third"], 5, "growth", mode="force_fetch"))
    for step, task, rows in (("a, first", "a", 3), ("a, then", "a", 2), ("b", "b", 2)):
        log.see_rows(f"claim of {step}", client.get_meta(FIELDS, rows, "growth", task_name=task).global_indexes)
    log.refused("claim of a, none left", lambda: client.get_meta(FIELDS, 1, "growth", task_name="a"))
    client.put(data=tokens(9, 1), partition_id="other")
    log.see("partitions", sorted(client.get_partition_list()))
    for partition in ("growth", "other"):
        client.clear_partition(partition)


def clear_samples(log: Log) -> None:
    """Half of a partition is cleared: the rest stays readable, what is gone is gone for everybody."""
    client = tq.get_client()
    put = client.put(data=pair(0, 6), partition_id="half")
    claimed = client.get_meta(FIELDS, 2, "half", task_name="a")
    half = put.select_samples([0, 2, 4])
    client.clear_samples(half)
    left = client.get_meta(FIELDS, 6, "half", mode="force_fetch")
    log.see("left", client.get_data(left))
    log.see("claimed before", len(claimed))
    log.see("claimed then", client.get_data(client.get_meta(FIELDS, 2, "half", task_name="a")))
    log.see("is consumed", client.check_consumption_status("a", "half"))
    log.refused("bytes of a cleared row", lambda: client.get_data(half))
    client.clear_samples(half)
    log.gone(half.global_indexes)
    log.see("put again", client.get_data(client.put(data=pair(10, 2), partition_id="half")))
    log.see("all fields of all", client.get_meta(FIELDS, 5, "half", mode="force_fetch").is_ready)
    client.clear_partition("half")


def value_kinds(log: Log) -> None:
    """Dtypes, ragged rows, texts and objects come back as they went in, by whatever path."""
    client = tq.get_client()
    data = kinds(3)
    log.see("put of kinds", client.put(data=data, partition_id="kinds"))
    meta = client.get_meta(sorted(data.keys()), 3, "kinds", task_name="a")
    log.see("meta of kinds", meta)
    log.see("kinds", client.get_data(meta))
    lengths = client.put(data=ragged([4, 1, 7]), partition_id="ragged")
    client.put(data=ragged([2, 2], dtype=lengths.get_dtypes("responses")[0]), partition_id="ragged")
    meta = client.get_meta(["responses"], 5, "ragged", task_name="a")
    log.see("meta of ragged rows", meta)
    log.see("ragged rows", client.get_data(meta))
    log.see("ragged rows reordered", client.get_data(meta.select_samples([4, 0, 2])))
    for partition in ("kinds", "ragged"):
        client.clear_partition(partition)


def wrong_use(log: Log) -> None:
    """What is refused, and that nothing is left of it."""
    client = tq.get_client()
    log.refused("put without a partition", lambda: client.put(data=pair(0, 1)))
    log.refused("mode unknown", lambda: client.get_meta(FIELDS, 1, "wrong", mode="peek"))
    log.refused("keys empty", lambda: client.kv_retrieve_meta([], "wrong"))
    log.refused("keys no texts", lambda: client.kv_retrieve_meta([1], "wrong"))
    log.see("keys in no partition", client.kv_retrieve_meta(["k"], "wrong").size)
    log.refused("keys of rows that are not there", lambda: client.kv_retrieve_keys([10**9], "wrong"))
    put = client.put(data=pair(0, 4), partition_id="wrong")
    log.refused("put of another number of rows", lambda: client.put(data=pair(0, 3), metadata=put))
    log.see("after all", client.get_data(client.get_meta(FIELDS, 4, "wrong", mode="force_fetch")))
    client.clear_partition("wrong")


def expected(log: Log) -> None:
    """A partition is consumed once all rows that it expects are, and not before they came."""
    client = tq.get_client()
    for first in (0, 2):
        client.put(data=pair(first, 2), partition_id="expected")
        client.get_meta(FIELDS, 2, "expected", task_name="a")
        log.see(f"is produced with {first + 2} rows", client.check_production_status(FIELDS, "expected"))
        log.see(f"is consumed with {first + 2} rows", client.check_consumption_status("a", "expected"))
        log.see(f"status with {first + 2} rows", client.get_consumption_status("a", "expected")[1])
    client.clear_partition("expected")
