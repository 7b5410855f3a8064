"""Claims against the model: what goes out, what is answered when too little is there, and who may wait for more."""

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
from tests.model.compare import account, described, shown
from tests.model.plain import Partition, Task
from tests.model.production import Model
from tests.model.samplers import Condition, Picker, passes
from tests.model.service import Answer
from tests.model.state import Lease
from tests.model.waiting import WAIT_S


@dataclass
class Claim:
    """One claim: `picker` is its sampler on the plain state; with a lease where `wanted` has its length."""

    name: str
    wanted: Wanted
    picker: Picker
    where: list[Condition] | None = None
    wait_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.wait_s = self.wanted.wait_s

    @classmethod
    def drawn(cls, data: st.DataObject, name: str, partition: Partition | None) -> "Claim":
        sizes = Counter(row.group for row in partition.rows.values()).values() if partition else ()
        picker = data.draw(draws.pickers(tuple(sizes)))
        most = picker.n * data.draw(st.sampled_from([1, 1, 2, 3]))
        fields = tuple(data.draw(st.lists(st.sampled_from(["ids"] * 6 + ["mask", "text"]), min_size=1, max_size=2)))
        least, wait_s = data.draw(st.integers(1, most)), data.draw(st.sampled_from([0.0, WAIT_S]))
        lease_s, worker = data.draw(st.sampled_from([None, 2.0, 5.0, 9.0])), data.draw(draws.workers)
        chosen, task = sampler(picker.name, picker.arguments), data.draw(draws.tasks)
        view, where = View(fields, expand=True), data.draw(st.none() | draws.wheres)
        meant = calls.conditions(where)
        wanted = Wanted(task, fields, most, least, wait_s, chosen, view, lease_s, worker, meant)
        return cls(name, wanted, picker, where)

    def call(self) -> calls.Call:
        return calls.claim(self.name, self.wanted, self.picker, self.where)

    def explanation(self) -> calls.Call:
        return calls.explain(self.name, self.wanted, self.picker, self.where)

    def ready(self, plain: Model) -> bool:
        if self.name in plain.state.deleted:
            return True
        partition = plain.find(self.name)
        if partition is None:
            return False
        return partition.is_done(self.wanted.task) or self._is_enough(partition, self._usual(partition))

    def meet(self, answer: Answer, plain: Model, is_last: bool) -> None:
        """It was answered; `is_last`: its time was up, or it did not want to wait."""
        partition = plain.find(self.name)
        if self.name in plain.state.deleted:
            assert answer.code == "partition-cleared"
            return
        least = self.wanted.least if is_last else self.wanted.most
        if partition and self._is_enough(partition, min(least, self._usual(partition))):
            self._check_batch(answer.body, partition)
            self._hand_out(answer.body, plain)
        else:
            self._check_refused(answer.body, partition or Partition())

    def takeable(self, partition: Partition) -> list[int]:
        """Rows that have all fields, are not taken, and pass `where`."""
        if not set(self.wanted.fields) <= partition.fields.keys():
            return []
        found = partition.takeable(self.wanted.task, self.wanted.fields)
        return [index for index in found if passes(partition.rows[index], self.where)]

    def _usual(self, partition: Partition) -> int:
        """Rows that need not wait for more; the last ones of a sealed partition once all are ready."""
        takeable = self.takeable(partition)
        if partition.is_sealed and 0 < len(takeable) < self.wanted.most and takeable == self._left(partition):
            return 1
        return self.picker.enough(partition, takeable, self.wanted.most)

    def _left(self, partition: Partition) -> list[int]:
        taken = partition.taken(self.wanted.task)
        return [i for i, row in partition.rows.items() if i not in taken and passes(row, self.where)]

    def _is_enough(self, partition: Partition, enough: int) -> bool:
        takeable = self.takeable(partition)
        offered = len(self.picker.offered(partition, takeable)) * self.picker.n
        taken = len(self.picker.taken(partition, takeable, self.wanted.most)) * self.picker.n
        return offered >= enough and taken >= enough

    def _check_batch(self, body: Any, partition: Partition) -> None:
        assert body["claim"] is not None, body
        found, n = body["batch"], self.picker.n
        indexes = found["global_indexes"]
        groups = [indexes[at : at + n] for at in range(0, len(indexes), n)]
        self.picker.check(partition, self.takeable(partition), groups, self.wanted.most)
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
        length_s, token = self.wanted.lease_s, info["token"]
        lease = Lease(number, self.name, info["task"], info["worker"], token, length_s, self.picker.n, {}, {})
        plain.lease(self.name, indexes, lease)
        assert (info["ack"], info["expires_in_s"]) == ("explicit", length_s)
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
        meant = {**account(held, kept), "wanted": self.wanted.most, "total": total}
        assert {member: body[member] for member in meant} == meant
        assert body["done"] == held.is_done(self.wanted.task)
        self._check_reasons(body, held)

    def _check_reasons(self, body: Any, partition: Partition) -> None:
        takeable = self.takeable(partition)
        assert body["ready"] == len(takeable)
        found = {(reason["reason"], reason.get("field")): reason for reason in body["blocking"]}
        if ("partition-absent", None) in found:
            assert not partition.rows
            return
        self._check_fields(found, partition)
        task, there = partition.tasks.get(self.wanted.task, Task()), partition.rows.keys()
        same(found.get(("consumed", None)), task.consumed & there)
        same(found.get(("leased", None)), task.leased.keys() & there)
        same(found.get(("dead", None)), task.dead.keys() & there)
        same(found.get(("clearing", None)), partition.clearing.keys() - task.consumed)
        same(found.get(("weight-missing", None)), self.picker.weightless(partition, takeable))
        is_known = set(self.wanted.fields) <= partition.fields.keys()  # else there is nothing to filter
        same(found.get(("filtered", None)), there - task.taken - set(self._left(partition)) if is_known else ())
        assert (("exhausted", None) in found) == (len(task.taken & there) == len(there))

    def _check_fields(self, found: Any, partition: Partition) -> None:
        for name in self.wanted.fields:
            if name not in partition.fields:
                assert found["field-unknown", name]["count"] == len(partition.rows)
            else:
                same(found.get(("not-produced", name)), [i for i, row in partition.rows.items() if not row.has(name)])


def same(reason: Any, indexes: Iterable[int]) -> None:
    """A reason counts these rows and names the first of them; none, where there are none."""
    rows = sorted(indexes)
    assert (reason["count"], reason["global_indexes"]) == (len(rows), rows[:10]) if rows else reason is None
