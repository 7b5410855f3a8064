"""Flows of the asynchronous interface: many calls at once on one loop, and a loop for each call."""

import asyncio

import transfer_queue as tq

from .data import pair, tokens
from .log import Log

PARTITION = "awaited"
ROWS = 12


def at_once(log: Log) -> None:
    """A rollout worker's puts, side by side on one loop, then what a trainer reads and clears."""
    asyncio.run(_at_once(log))
    tq.get_client().clear_partition(PARTITION)


async def _at_once(log: Log) -> None:
    puts = [tq.async_kv_put(f"k{row}", PARTITION, fields=pair(row, 1), tag={"row": row}) for row in range(ROWS)]
    log.see("puts", sorted((meta.keys[0], meta.tags[0]["row"]) for meta in await asyncio.gather(*puts)))
    listed = await tq.async_kv_list(PARTITION)
    log.see("listed", {key: tag["row"] for key, tag in listed[PARTITION].items()})
    keys = [f"k{row}" for row in range(ROWS)]
    reads = [tq.async_kv_batch_get(keys[row : row + 4], PARTITION) for row in range(0, ROWS, 4)]
    log.see("reads", await asyncio.gather(*reads))
    meta = await tq.async_kv_batch_put(keys[:2], PARTITION, fields=tokens(3, 2, name="late"), tags=[{"late": 1}] * 2)
    log.see("by meta", await tq.async_kv_batch_get_by_meta(meta, select_fields="late"))
    await asyncio.gather(*(tq.async_kv_clear(key, PARTITION) for key in keys[2:]))
    log.see("left", await tq.async_kv_list(PARTITION))


def loop_per_call(log: Log) -> None:
    """A caller without a loop of its own runs one for each call."""
    asyncio.run(tq.async_kv_put("a", PARTITION, fields=pair(0, 1), tag={"n": 0}))
    asyncio.run(tq.async_kv_put("a", PARTITION, tag={"n": 1}))
    log.see("list", asyncio.run(tq.async_kv_list(PARTITION)))
    log.see("data", asyncio.run(tq.async_kv_batch_get("a", PARTITION)))
    asyncio.run(tq.async_kv_clear("a", PARTITION))
    log.see("after clear", tq.kv_list(PARTITION))
    log.refused("clear of an emptied partition", lambda: tq.get_client().clear_partition(PARTITION))


def low_level(log: Log) -> None:
    """The low-level client's calls, awaited; blocking ones of the same client between them."""

    async def flow() -> None:
        client = tq.get_client()
        put = await client.async_put(data=pair(0, 4), partition_id=PARTITION)
        meta = await client.async_get_meta(["input_ids"], 2, PARTITION, task_name="a")
        log.see("data", await client.async_get_data(meta))
        log.see("is produced", await client.async_check_production_status(["input_ids"], PARTITION))
        log.see("is consumed", await client.async_check_consumption_status("a", PARTITION))
        log.see("partitions", await client.async_get_partition_list())
        log.see("reset", await client.async_reset_consumption(PARTITION, "a"))
        await client.async_clear_samples(put.select_samples([0]))
        left = await client.async_get_meta(["input_ids"], 4, PARTITION, mode="force_fetch")
        log.see("left", await client.async_get_data(left))
        await client.async_clear_partition(PARTITION)

    asyncio.run(flow())
    log.see("partitions in the end", tq.get_client().get_partition_list())
