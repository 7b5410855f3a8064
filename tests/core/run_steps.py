"""The calls that tests of runs make: puts of few forms, claims, acks, and whatever may come between them.

A step is an operation of core with its arguments. `steps` draws a script of them, with bursts of calls that are alike.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from core.engine import Engine
from core.operations.claim import ClaimRequest, claim, claim_now
from core.operations.clears import ClearRequest, abort_clear, commit_clear, plan_clear
from core.operations.delete import delete
from core.operations.leases import Ack, ack, extend, release_worker
from core.operations.partitions import delete_partition, patch_partition, seal_partition
from core.operations.produce import RowWrite, insert, patch_custom_meta, produce
from core.operations.revoke import revoke
from core.reading.batch import View
from core.reading.selectors import Selector
from core.samplers import Sequential
from core.samplers.grpo_group import GrpoGroup
from core.state.cells.json_cells import Const, CustomMetaMode
from core.writing.forms import Form, OneRow
from tests.core.test_where import parsed
from tests.core.world import Schema, look

Step = tuple[Any, ...]
WHERE = parsed(("n", ">=", 1))
FIRST = {"x": Schema("int64", lengths=[1]), "f": Schema("uint8", shape=[1, 1]), "o": Schema(kind="object")}
FORMS = (
    Form(FIRST, {"x": Const(b'"1"'), "o": Const(b'"2"')}),
    Form(FIRST, {"x": Const(b'"9"')}),
    Form({"x": Schema("int64", lengths=[1])}, {}),
    Form({"x": Schema("float32", lengths=[1])}, {}),
    Form({"y": Schema("int64", shape=[1])}, {}),
)
GROUPS = (None, ["g"], ["h"], [7], [None], ["g", "h"])
METAS = (
    None,
    [b'{"n":1}'],
    [b'{"n":2}'],
    [b"{}"],
    [b"null"],
    [b'{"n":null}'],
    [b'{"n":null,"m":1}'],
    [b"[]"],
    [b'{"n":1'],
    [b"{}", b"{}"],
)


def put(
    partition: str,
    key: str,
    form: int,
    sizes: tuple[int, int],
    group: int = 1,
    meta: int = 1,
    skip: bool = False,
    mode: CustomMetaMode = "merge",
) -> Step:
    """One row of a form: the length of its x or y, and a size of its f where it has one."""
    length, size = sizes
    row = OneRow(FORMS[form], [length, size, 1] if form < 2 else [length])
    write = RowWrite(keys=[key], group_ids=GROUPS[group], custom_meta=METAS[meta], custom_meta_mode=mode)
    return produce, partition, write, True, row, FORMS[form].backend_meta, skip


def take(size: int, grouped: bool, where: bool, wait_s: float, lease_s: float | None = None, task: str = "t") -> Step:
    """A claim, with a lease where it has a length."""
    sampler, worker = GrpoGroup(size) if grouped else Sequential(), None if lease_s is None else "w"
    wanted = ClaimRequest(
        task, ("x",), size, size, wait_s, sampler, View(), lease_s, worker, where=WHERE if where else None
    )
    return (claim if wait_s else claim_now, "p", wanted)


def pick(*keys: str) -> Selector:
    return Selector(keys=list(keys))


def settle(engine: Engine, how: str) -> object:
    """Something is done to the newest lease, if there is one."""
    lease = next(reversed(engine.leases.open.values()), None)
    if lease is None:
        return None
    if how == "extend":
        return len(extend(engine, lease.claim_id, lease.token, 90.0).lease.indexes)
    rows, nothing = lease.open_rows().tolist(), list[int]()
    named = {
        "accept": (None, nothing, nothing),
        "release": (nothing, rows, nothing),
        "first": (rows[:1], nothing, nothing),
    }
    fates = named.get(how) or (nothing, nothing, [(row, "bad") for row in rows])
    return ack(engine, lease.claim_id, Ack(lease.token, *fates))


def close(engine: Engine, how: Callable[[Engine, str], object]) -> object:
    """The newest clear that is pending, if there is one."""
    pending = [clear.clear_id for clear in engine.partitions["p"].clears.values()] if "p" in engine.partitions else []
    return how(engine, pending[-1]) if pending else None


key = st.sampled_from("abcdefgh")
puts = st.builds(
    put,
    st.sampled_from("ppppppq"),
    st.sampled_from("abcdefghijklmnop\n"),
    st.sampled_from((0, 0, 0, 0, 0, 0, 1, 2, 3, 4)),
    st.tuples(st.integers(0, 2), st.sampled_from((1, 1, 1, 2))),
    st.sampled_from((1, 1, 1, 1, 1, 0, 2, 3, 4, 5)),
    st.sampled_from((1, 1, 1, 1, 1, *range(len(METAS)))),
    st.booleans(),
    st.sampled_from(("merge", "merge", "update")),
)


def burst(keys: list[str], form: int, group: int, meta: int) -> list[Step]:
    """Puts that are alike but for their keys, some of which may be there."""
    return [put("p", key, form, (at, 1), group, meta) for at, key in enumerate(keys)]


bursts = st.builds(
    burst,
    st.lists(st.sampled_from("abcdefghijklmnop"), min_size=2, max_size=8),
    st.sampled_from((0, 0, 0, 2)),
    st.sampled_from((1, 1, 0)),
    st.sampled_from((1, 1, 0)),
)
others: st.SearchStrategy[Step] = st.one_of(
    st.builds(take, st.integers(1, 2), st.booleans(), st.booleans(), st.sampled_from((0.0, 30.0))),
    st.builds(lambda key: (insert, "p", None, RowWrite(keys=[key]), View()), key),
    st.builds(
        lambda key, mode: (
            patch_custom_meta,
            "p",
            RowWrite(keys=[key], custom_meta=[b'{"n":null,"m":1}'], custom_meta_mode=mode),
        ),
        key,
        st.sampled_from(("merge", "update")),
    ),
    st.builds(
        take,
        st.integers(1, 2),
        st.booleans(),
        st.just(value=False),
        st.sampled_from((0.0, 30.0)),
        st.sampled_from((20.0, 600.0)),
        st.sampled_from(("t", "leases")),
    ),
    st.sampled_from([(settle, how) for how in ("accept", "release", "first", "reject", "extend")]),
    st.just((release_worker, "w")),
    st.builds(lambda key: (delete, "p", pick(key)), key),
    st.builds(lambda key: (revoke, "p", pick(key), ("x",)), key),
    st.builds(lambda key, keeps: (plan_clear, "p", ClearRequest(pick(key), with_tombstones=keeps)), key, st.booleans()),
    st.sampled_from([(close, commit_clear), (close, abort_clear)]),
    st.builds(lambda most: (patch_partition, "p", None, most, None), st.integers(1, 6)),
    st.sampled_from([(seal_partition, "p"), (delete_partition, "p", None), (look, "p")]),
)
claims = st.builds(
    lambda size, wait_s, times: [take(size, grouped=False, where=False, wait_s=wait_s)] * times,
    st.integers(1, 3),
    st.sampled_from((0.0, 0.0, 30.0)),
    st.integers(2, 5),
)
single = st.one_of(puts, others).map(lambda step: [step])
steps = st.lists(st.one_of(bursts, claims, single), min_size=3, max_size=12).map(
    lambda parts: [step for part in parts for step in part]
)
