"""Calls that may wait, against the model: when they can be answered, and what they must be told.

`ready` is the whole condition under which such a call is answered before its time is up; `meet` takes the answer.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from core.batch import View
from core.leases import number_of
from core.operations.claim import Wanted
from core.samplers import sampler
from tests.model import calls, draws
from tests.model.compare import account, described, key_line, meant_summary, shown, summary
from tests.model.plain import Lease, Partition, Task
from tests.model.production import Model, listed_after
from tests.model.service import Answer

WAIT_S = 5.0


@dataclass
class Watch:
    """GET of a partition past a revision."""

    name: str
    revision: int
    wait_s: float = WAIT_S

    def call(self) -> calls.Call:
        return calls.watch(self.name, self.revision, self.wait_s)

    def ready(self, plain: Model) -> bool:
        partition = plain.find(self.name)
        return partition is None or partition.revision > self.revision

    def meet(self, answer: Answer, plain: Model, _: bool) -> None:
        partition = plain.find(self.name)
        if partition is None:
            assert answer.code == ("partition-cleared" if self.name in plain.state.deleted else "partition-not-found")
        else:
            assert summary(answer.body) == meant_summary(self.name, partition)


@dataclass
class Follow:
    """GET of the keys that changed after a revision."""

    name: str
    revision: int
    wait_s: float = WAIT_S

    def call(self) -> calls.Call:
        return calls.changes(self.name, self.revision, self.wait_s)

    def ready(self, plain: Model) -> bool:
        partition = plain.find(self.name)
        return partition is None or any(listed_after(partition, self.revision))

    def meet(self, answer: Answer, plain: Model, _: bool) -> None:
        partition = plain.find(self.name)
        if partition is None:
            assert answer.code == ("partition-cleared" if self.name in plain.state.deleted else "partition-not-found")
            return
        rows, left = listed_after(partition, self.revision)
        assert answer.body["keys"] == list(map(key_line, rows))
        assert sorted(answer.body["removed"]) == sorted(left)
        assert answer.body["revision"] == partition.revision


@dataclass
class Claim:
    """One claim: of whole groups of `n` where `by` says so, with a lease where `wanted` has its length."""

    name: str
    wanted: Wanted
    n: int
    by: str | None
    wait_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.wait_s = self.wanted.wait_s

    @classmethod
    def drawn(cls, data: st.DataObject, name: str, partition: Partition | None) -> "Claim":
        by = data.draw(st.sampled_from(["group_id", "group_id", "position", None, None]))
        sizes = Counter(row.group for row in partition.rows.values()).values() if partition else ()
        n = data.draw(st.sampled_from([*sizes, 1, 2, 2, 3])) if by else 1
        most = n * data.draw(st.sampled_from([1, 1, 2, 3]))
        chosen = sampler("grpo_group", {"n_samples_per_prompt": n, "group_by": by}) if by else sampler("sequential", {})
        fields = tuple(data.draw(st.lists(st.sampled_from(["ids"] * 6 + ["mask", "text"]), min_size=1, max_size=2)))
        least, wait_s = data.draw(st.integers(1, most)), data.draw(st.sampled_from([0.0, WAIT_S]))
        lease_s, worker = data.draw(st.sampled_from([None, 2.0, 5.0, 9.0])), data.draw(draws.workers)
        view, task = View(fields, expand=True), data.draw(draws.tasks)
        return cls(name, Wanted(task, fields, most, least, wait_s, chosen, view, lease_s, worker), n, by)

    def call(self) -> calls.Call:
        return calls.claim(self.name, self.wanted)

    def ready(self, plain: Model) -> bool:
        if self.name in plain.state.deleted:
            return True
        partition = plain.find(self.name)
        is_done = partition is not None and partition.is_done(self.wanted.task)
        return is_done or self._is_enough(partition, self.wanted.most)

    def meet(self, answer: Answer, plain: Model, is_last: bool) -> None:
        """It was answered; `is_last`: its time was up, or it did not want to wait."""
        partition = plain.find(self.name)
        if self.name in plain.state.deleted:
            assert answer.code == "partition-cleared"
        elif partition and self._is_enough(partition, self.wanted.least if is_last else self.wanted.most):
            self._check_batch(answer.body, partition)
            self._hand_out(answer.body, plain)
        else:
            self._check_refused(answer.body, partition or Partition())

    def offered(self, partition: Partition | None) -> list[list[int]]:
        """Groups that could go out: of one row each for `sequential`."""
        if partition is None or not set(self.wanted.fields) <= partition.fields.keys():
            return []
        if self.by is None:
            return [[index] for index in partition.takeable(self.wanted.task, self.wanted.fields)]
        return partition.whole_groups(self.wanted.task, self.wanted.fields, self.n, self.by)

    def _is_enough(self, partition: Partition | None, usual: int) -> bool:
        """The last rows of a sealed partition go out once all are ready, whatever the minimum."""
        enough = usual
        if partition is not None and partition.is_sealed:
            taken = partition.taken(self.wanted.task)
            left = [index for index in partition.rows if index not in taken]
            ready = partition.takeable(self.wanted.task, self.wanted.fields)
            enough = 1 if 0 < len(left) < self.wanted.most and left == ready else usual
        return len(self.offered(partition)) * self.n >= enough

    def _check_batch(self, body: Any, partition: Partition) -> None:
        assert body["claim"] is not None, body
        found, offered = body["batch"], self.offered(partition)
        indexes = found["global_indexes"]
        groups = [indexes[at : at + self.n] for at in range(0, len(indexes), self.n)]
        assert len(groups) == min(self.wanted.most // self.n, len(offered))
        if self.by == "group_id":
            assert all(group in offered for group in groups)
            assert len(set(indexes)) == len(indexes)
        else:
            assert groups == offered[: len(groups)]
        meant = described(partition, indexes, list(self.wanted.fields), False)
        assert found["production_status"] == meant["production_status"] == [1] * len(indexes)
        assert shown(found) == {member: meant[member] for member in shown(found)}

    def _hand_out(self, body: Any, plain: Model) -> None:
        info, indexes = body["claim"], body["batch"]["global_indexes"]
        number = number_of(info["claim_id"])
        assert number == body["revision"] == plain.revision + 1
        assert (info["task"], info["worker"]) == (self.wanted.task, self.wanted.worker)
        if self.wanted.lease_s is None:
            assert (info["ack"], info.get("token")) == ("on_dispatch", None)
            plain.consume(self.name, self.wanted.task, indexes)
            return
        lease = Lease(
            number, self.name, info["task"], info["worker"], info["token"], self.wanted.lease_s, self.n, {}, {}
        )  # fmt: skip
        plain.lease(self.name, indexes, lease)
        assert (info["ack"], info["expires_in_s"]) == ("explicit", self.wanted.lease_s)
        assert info["attempts"] == list(lease.attempts.values())
        assert info["attempt"] == max(lease.attempts.values())

    def _check_refused(self, body: Any, partition: Partition) -> None:
        assert body["claim"] is None, body
        assert body["batch"]["global_indexes"] == []
        assert (body["wanted"], body["done"]) == (self.wanted.most, partition.is_done(self.wanted.task))
        self._check_reasons(body, partition)

    def check_explained(self, body: Any, partition: Partition | None) -> None:
        """The same question, asked without taking."""
        held = partition or Partition()
        kept = held.tasks.get(self.wanted.task, Task())
        total = len(held.rows) + kept.consumed_gone(held) + max(0, (held.expected or 0) - held.inserted)
        meant = {
            **account(held, kept),
            "wanted": self.wanted.most,
            "total": total,
            "done": held.is_done(self.wanted.task),
        }
        assert {member: body[member] for member in meant} == meant
        self._check_reasons(body, held)

    def _check_reasons(self, body: Any, partition: Partition) -> None:
        task, fields = partition.tasks.get(self.wanted.task, Task()), self.wanted.fields
        known = set(fields) <= partition.fields.keys()
        assert body["ready"] == (len(partition.takeable(self.wanted.task, fields)) if known else 0)
        found = {(reason["reason"], reason.get("field")): reason for reason in body["blocking"]}
        if ("partition-absent", None) in found:
            assert not partition.rows
            return
        lacking = {name: [i for i, row in partition.rows.items() if not row.has(name)] for name in fields}
        for name in fields:
            if name not in partition.fields:
                assert found["field-unknown", name]["count"] == len(partition.rows)
            else:
                same(found.get(("not-produced", name)), lacking[name])
        there = partition.rows.keys()
        same(found.get(("consumed", None)), task.consumed & there)
        same(found.get(("leased", None)), task.leased.keys() & there)
        same(found.get(("dead", None)), task.dead.keys() & there)
        same(found.get(("clearing", None)), partition.clearing.keys() - task.consumed)
        assert (("exhausted", None) in found) == (len(task.taken & there) == len(there))


def same(reason: Any, indexes: Iterable[int]) -> None:
    """A reason counts these rows and names the first of them; none, where there are none."""
    rows = sorted(indexes)
    assert (reason["count"], reason["global_indexes"]) == (len(rows), rows[:10]) if rows else reason is None
