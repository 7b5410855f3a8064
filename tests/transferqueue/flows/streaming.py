"""Flows of the streaming data set and loader, as a trainer with data-parallel ranks runs them."""

from collections.abc import Iterator

import transfer_queue as tq

from .controller import config, register
from .data import tokens
from .log import Log

FIELD = "meta_idx"


def _dataset(rank: int, batch: int, micro: int, partition: str = "stream") -> tq.StreamingDataset:
    return tq.StreamingDataset(
        config=config(),
        batch_size=batch,
        micro_batch_size=micro,
        data_fields=[FIELD],
        partition_id=partition,
        task_name="train",
        dp_rank=rank,
        should_check_consumption_status=True,
    )


def _produce(partition: str, rows: int, first: int = 0) -> None:
    client = tq.get_client()
    for row in range(first, first + rows):
        client.put(data=tokens(row, 1, length=1, name=FIELD), partition_id=partition)


def _values(step: tuple[object, tq.BatchMeta]) -> list[int]:
    data, meta = step
    values = [int(row) for row in data[FIELD]]  # type: ignore[index]
    assert len(values) == len(meta)
    return values


def members_of_ranks(log: Log) -> None:
    """Two members of rank 0 and one of rank 1 take turns: who shares a rank sees the same, in micro batches."""
    register(tq.RankAwareSampler())
    _produce("stream", 12)
    members: dict[str, Iterator[object]] = {
        name: iter(_dataset(rank, batch=4, micro=2)) for name, rank in (("a", 0), ("b", 0), ("c", 1))
    }
    for name in ("a", "b", "c", "a", "b", "c", "a", "b", "a", "b"):
        step = next(members[name], None)
        log.see(f"step {len(log.steps)}: {name}", step and _values(step))  # type: ignore[arg-type]
    log.see("after the last batch", {name: [_values(each) for each in members[name]] for name in sorted(members)})  # type: ignore[arg-type]
    tq.get_client().clear_partition("stream")


def loader(log: Log) -> None:
    """The loader in this process: to the end, again from its buffer, then another partition."""
    register(tq.RankAwareSampler())
    _produce("stream", 6)
    _produce("next", 4, first=6)
    made = tq.StreamingDataLoader(_dataset(0, batch=2, micro=1))
    log.see("first pass", [_values(step) for step in made])
    log.see("buffer", [[_values(step)] for step in made.get_buffer()])
    made.reset()
    log.see("second pass", [_values(step) for step in made])
    made.step("next")
    log.see("next partition", [_values(step) for step in made])
    log.see("is consumed", tq.get_client().check_consumption_status("train", "next"))
    for partition in ("stream", "next"):
        tq.get_client().clear_partition(partition)


def loader_with_workers(log: Log) -> None:
    """The loader in a forked process, beside a parent whose client goes on working."""
    register(tq.RankAwareSampler())
    _produce("stream", 6)
    made = tq.StreamingDataLoader(_dataset(0, batch=2, micro=2), num_workers=1, prefetch_factor=1)
    log.see("forked", [_values(step) for step in made])
    log.see("the parent's client", tq.get_client().check_consumption_status("train", "stream"))
    tq.get_client().clear_partition("stream")
