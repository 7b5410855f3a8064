"""Writing and taking, against a client that is made up: what the loops do when the service answers oddly."""

from itertools import chain, repeat
from typing import Any

import numpy as np
import pytest

from batchmeta import BatchMeta, Claim
from crew.desk import Desk, Want, batches, fetch
from crew.storage import MissingBytes
from crew.values import DamagedValue, pack

WANT = Want("p", ("ids",), 1, 2)


def batch(*indexes: int, lengths: tuple[int, ...] = (), cell: str = "1") -> BatchMeta:
    shapes = [[length] for length in lengths or (2,) * len(indexes)]
    return BatchMeta.from_dict(
        {
            "partition_id": "p",
            "revision": 1,
            "size": len(indexes),
            "is_ready": bool(indexes),
            "global_indexes": list(indexes),
            "fields": ["ids"],
            "missing_fields": [],
            "production_status": [1] * len(indexes),
            "field_schema": {"ids": {"kind": "tensor", "dtype": "int64", "ragged": True, "shapes": shapes}},
            "backend_meta": {"ids": [cell] * len(indexes)},
        }
    )


def handed_out(*indexes: int) -> Claim:
    return Claim("p", 1, "c", batch(*indexes))


def nothing(done: bool = False) -> Claim:
    return Claim("p", 1, None, batch(), 0, 2, done)


class Answers:
    """A client whose claims are answered from a list."""

    def __init__(self, *claims: Claim) -> None:
        self._claims = chain(claims, repeat(claims[-1]))

    async def claim(self, *_: object, **__: object) -> Claim:
        return next(self._claims)


class Held(dict[str, bytes]):
    """Storage in this process."""

    def get(self, names: Any) -> Any:
        missing = [name for name in names if name not in self]
        if missing:
            raise MissingBytes(missing)
        return [self[name] for name in names]


def desk(client: object, storage: object = None) -> Desk:
    return Desk(client, storage, lambda *_: None)  # type: ignore[arg-type]


async def taken(*claims: Claim) -> tuple[list[list[int]], list[int], int]:
    at = desk(Answers(*claims))
    tally = at.tally("t")
    rows = [list(got.global_indexes) async for got in batches(at, tally, WANT)]
    return rows, tally.consumed.get("p", []), tally.calls


@pytest.mark.asyncio
async def test_batches_come_until_the_service_says_done() -> None:
    assert await taken(handed_out(4, 5), nothing(), handed_out(6), nothing(done=True)) == ([[4, 5], [6]], [4, 5, 6], 4)


@pytest.mark.asyncio
async def test_a_service_that_hands_out_the_same_rows_for_ever_ends_the_loop_and_is_in_the_books() -> None:
    assert await taken(handed_out(4, 5)) == ([[4, 5]], [4, 5, 4, 5], 2)


def test_fetch_gives_columns_in_row_order_and_counts_what_it_checked() -> None:
    held = Held({"7@ids": pack(np.arange(2)), "8@ids": pack(np.arange(3))})
    at = desk(None, held)

    columns = fetch(at, at.tally("t"), batch(8, 7, lengths=(3, 2)), ("ids",))

    assert [value.tolist() for value in columns["ids"]] == [[0, 1, 2], [0, 1]]
    assert at.tally("t").checked == 2


@pytest.mark.parametrize(
    ("stored", "told"),
    [
        (pack(np.arange(2)), batch(7, lengths=(3,))),
        (pack(np.arange(2, dtype=np.int32)), batch(7)),
        (pack({"no": "tensor"}), batch(7, cell="2")),
        (pack(np.arange(2)), batch(7, cell="2")),
        (pack(np.arange(2))[:-1] + b"x", batch(7)),
    ],
    ids=["another shape", "another dtype", "no tensor", "another class", "other bytes"],
)
def test_bytes_that_are_not_what_the_batch_tells_are_refused(stored: bytes, told: BatchMeta) -> None:
    at = desk(None, Held({"7@ids": stored}))

    with pytest.raises(DamagedValue):
        fetch(at, at.tally("t"), told, ("ids",))


def test_bytes_that_are_not_there_are_refused() -> None:
    at = desk(None, Held())

    with pytest.raises(MissingBytes, match="7@ids"):
        fetch(at, at.tally("t"), batch(7), ("ids",))
