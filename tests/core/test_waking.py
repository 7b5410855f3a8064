"""Claims that wait are served as if each were looked at after every change, against a scan of all rows.

Two services get the same calls. One looks only at the claims that a change may serve, and keeps its supplies. The other
looks at all that wait, and makes each supply anew for each look. Both must answer the same calls, with the same, in the
same order.
"""

import json
import os
import random
from typing import Any

import msgspec
import pytest

import core.state.partition
from batchmeta.wire.requests import Where as Wire
from core.engine import Engine
from core.operations.claim import Claimed, ClaimRequest, claim
from core.operations.clears import ClearRequest, abort_clear, commit_clear, plan_clear
from core.operations.consumption import reset_consumption
from core.operations.delete import delete
from core.operations.leases import Ack, ack
from core.operations.partitions import delete_partition, put_partition, seal_partition
from core.operations.produce import RowWrite, insert, patch_custom_meta, produce
from core.operations.revoke import revoke
from core.reading.batch import View
from core.reading.selectors import Selector
from core.runtime.watch import Watch
from core.samplers import sampler
from core.state.partition import Partition
from core.state.supply.supplies import Supplies
from core.state.where import Where, where
from tests.core.driven import World
from tests.core.world import TENSOR, Clock

P = "p"
LONG = os.environ.get("TEST_LONG") == "1"
FIELDS = (("f",), ("g",), ("f", "g"), ("h",))
WHERES: tuple[list[dict[str, Any]], ...] = (
    [],
    [{"path": "k", "op": "==", "value": "a"}],
    [{"path": "k", "op": "in", "value": ["a", "b", 1]}, {"path": "v", "op": ">=", "value": 2}],
    [{"path": "v", "op": "<", "value": 2}],
    [{"path": "k", "op": "exists", "value": False}],
)
SAMPLERS: tuple[tuple[str, dict[str, Any], int], ...] = (
    ("sequential", {}, 1),
    ("lifo", {}, 1),
    ("random", {"seed": 3}, 1),
    ("priority", {"weight": "v"}, 1),
    ("token_budget", {"weight": "v", "budget": 4}, 1),
    ("grpo_group", {"n_samples_per_prompt": 2}, 2),
    ("grpo_group", {"n_samples_per_prompt": 2, "group_by": "position"}, 2),
    ("rank_aware", {"dp_rank": 0, "batch_index": 1}, 1),
    ("seqlen_balanced", {"dp_rank": 1, "dp_size": 2, "batch_index": 1, "weight": "v"}, 1),
    ("seqlen_balanced", {"dp_rank": 0, "dp_size": 2, "batch_index": 2, "weight": "v", "n_samples_per_prompt": 2}, 2),
)


def parsed(conditions: list[dict[str, Any]]) -> Where | None:
    return where(msgspec.convert(conditions, Wire), "body.where")


def request(a: int, b: int, c: int, lease: bool) -> ClaimRequest:
    name, arguments, each = SAMPLERS[a % len(SAMPLERS)]
    size = (b % 3 + 1) * each
    return ClaimRequest(
        f"t{c % 3}",
        FIELDS[b % len(FIELDS)],
        size,
        each,
        float(3 + a % 9),
        sampler(name, arguments),
        View(),
        lease_s=5.0 if lease else None,
        where=parsed(WHERES[c % len(WHERES)]),
    )


def step(world: World, what: str, a: int, b: int, c: int) -> None:
    """One call, of whatever rows are there."""
    engine = world.engine
    partition = engine.partitions.get(P)
    rows = partition.rows.after(-1, 99) if partition else []
    indexes = partition.rows.global_index[rows].tolist() if partition else []
    some = indexes[a % len(indexes) :][: b % 4 + 1] if indexes else []
    metas = [json.dumps({"v": (a + i) % 5, "k": ["a", "b", 1, None][(b + i) % 4]}).encode() for i in range(4)]
    loose = [i for i, row in zip(indexes, rows, strict=True) if not partition.groups.number[row]][:2]  # type: ignore[union-attr]
    fields = dict.fromkeys(FIELDS[c % 3], TENSOR)
    new = RowWrite(
        keys=[f"k{len(world.told)}-{i}" for i in range(b % 4 + 1)],
        group_ids=[f"g{(a + i // 2) % 4}" for i in range(b % 4 + 1)],
        custom_meta=metas[: b % 4 + 1],
    )
    held = world.claimed.pop(a % len(world.claimed)) if world.claimed and what == "settle" else None
    calls: dict[str, tuple[Any, ...]] = {
        "wait": (claim, P, request(a, b, c, a % 2 == 0)),
        "put": (produce, P, new, True, fields, {}),
        "add": (insert, P, b % 3 + 1, RowWrite(), View()),
        "write": (produce, P, RowWrite(some), False, fields, {}),
        "field": (produce, P, RowWrite(some), False, {"h": TENSOR}, {}),
        "tag": (patch_custom_meta, P, RowWrite(some, custom_meta=metas[: len(some)])),
        "group": (produce, P, RowWrite(loose, group_ids=[f"g{a % 4}"] * len(loose)), False, {}, {}),
        "settle": (settle, held, a),
        "delete": (delete, P, Selector(indexes=some[:2])),
        "plan": (plan_clear, P, ClearRequest(Selector(indexes=some[:2]))),
        "close": (close, a),
        "revoke": (revoke, P, Selector(indexes=some[:1]), ("f",)),
        "reset": (reset_consumption, P, f"t{c % 3}"),
        "time": (advance, 1.0 + b % 3),
        "seal": (seal_partition, P),
        "expect": (put_partition, P, len(indexes) + c % 2, None, None, {}),
        "drop": (delete_partition, P, None),
        "leave": (lambda _: None,),
    }
    if what == "leave" and world.waiting:
        gone = world.waiting[a % len(world.waiting)]
        gone.future.is_gone = True  # type: ignore[attr-defined]
        world.thread.leave(gone)
    world.do(*calls[what])


def settle(engine: Engine, held: Claimed | None, number: int) -> None:
    if held is None or held.lease is None:
        return
    rows = held.lease.open_rows().tolist()
    by = {"accept": (rows, [], []), "release": ([], rows, []), "reject": ([], [], [(row, "bad") for row in rows])}
    accept, release, reject = by[("accept", "release", "release", "reject")[number % 4]]
    ack(engine, held.claim_id, Ack(held.lease.token, accept, release, reject))


def close(engine: Engine, number: int) -> None:
    for one in list(engine.clears.pending.values())[:1]:
        (abort_clear if number % 2 else commit_clear)(engine, one.clear_id)


def advance(engine: Engine, seconds: float) -> None:
    assert isinstance(engine.clock, Clock)
    engine.clock.now += seconds


SEALED = (52, 113, 192, 310)  # in these a claim waits for the end of a sealed partition
OFTEN = ["wait"] * 6 + ["put"] * 4 + ["write"] * 4 + ["add", "tag", "tag", "group", "settle", "settle", "settle"]
SELDOM = ["field", "delete", "plan", "close", "revoke", "reset", "time", "time", "leave", "expect"]


def live(steps: list[tuple[str, int, int, int]], end: str, at: int) -> list[str]:
    world = World()
    put_partition(world.engine, P, None, None, None, {"f": TENSOR, "g": TENSOR})
    for number, one in enumerate(steps):
        if number == at:
            step(world, end, 0, 0, 0)
        step(world, *one)
    return world.told


def drawn(seed: int) -> tuple[list[tuple[str, int, int, int]], str, int]:
    chance = random.Random(seed)
    steps = [(chance.choice(OFTEN + SELDOM), *(chance.randrange(60) for _ in range(3))) for _ in range(60)]
    return steps, chance.choice(["seal", "seal", "drop", "put"]), chance.randrange(5, 60)


@pytest.mark.parametrize("seed", sorted({*range(400 if LONG else 40), *SEALED}))
def test_a_claim_that_waits_is_served_as_if_all_were_looked_at(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(core.state.partition, "GAPS", 2)
    found = live(*drawn(seed))
    monkeypatch.setattr(Watch, "due", lambda *_: None)
    monkeypatch.setattr(Partition, "supply", lambda self, *asked: Supplies().of(self, *(*asked, None)[:3]))
    assert found == live(*drawn(seed))
