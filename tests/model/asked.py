"""A claim's request against the model: which rows it could take, and why there are too few."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Self

from hypothesis import strategies as st

from core.operations.claim import ClaimRequest
from core.reading.batch import View
from core.samplers import sampler
from tests.model import calls, draws, shares
from tests.model.by_rank import ByRank
from tests.model.compare import account
from tests.model.memory import Told
from tests.model.plain import Partition
from tests.model.production import Model
from tests.model.samplers import Condition, Picker, passes
from tests.model.service import Answer
from tests.model.tasks import Task
from tests.model.waiting import WAIT_S


@dataclass
class Asked:
    """What one claim says: `picker` is its sampler on the plain state; with a lease where `wanted` has its length."""

    name: str
    wanted: ClaimRequest
    picker: Picker
    where: list[Condition] | None = None
    wait_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.wait_s = self.wanted.wait_s

    @classmethod
    def drawn(cls, data: st.DataObject, name: str, partition: Partition | None) -> Self:
        sizes = Counter(row.group for row in partition.rows.values()).values() if partition else ()
        picker = data.draw(draws.pickers(tuple(sizes)))
        most = picker.n * data.draw(st.sampled_from([1, 1, 2, 3]))
        fields = tuple(data.draw(st.lists(st.sampled_from(["ids"] * 6 + ["mask", "text"]), min_size=1, max_size=2)))
        least, wait_s = data.draw(st.integers(1, most)), data.draw(st.sampled_from([0.0, WAIT_S]))
        lease_s, worker = data.draw(st.sampled_from([None, 2.0, 5.0, 9.0])), data.draw(draws.workers)
        chosen, task = sampler(picker.name, picker.arguments), data.draw(draws.tasks)
        view, where = View(fields, expand=True, share=True), data.draw(st.none() | draws.wheres)
        meant = calls.conditions(where)
        wanted = ClaimRequest(task, fields, most, least, wait_s, chosen, view, lease_s, worker, meant)
        return cls(name, wanted, picker, where)

    @classmethod
    def again(cls, data: st.DataObject, name: str, partition: Partition | None) -> Self:
        """By a sampler with memory; mostly of a key that is known, in the words that were said first."""
        drawn, tasks = cls.drawn(data, name, partition), partition.tasks if partition else {}
        known = [(task, one) for task, kept in tasks.items() for one in draws.BY_RANK if shares.fits(one, kept)]
        task, picker = data.draw(st.sampled_from(known) if known else st.tuples(draws.tasks, draws.by_rank))
        most = picker.n * data.draw(st.sampled_from([1, 1, 1, 2]))
        least, chosen = data.draw(st.integers(1, most)), sampler(picker.name, picker.arguments)
        wanted = replace(
            drawn.wanted, task=task, sampler=chosen, batch_size=most, min_batch_size=least, fields=("ids",)
        )
        where = data.draw(st.sampled_from([None, None, None, drawn.where]))
        if known and data.draw(st.integers(0, 5)):
            wanted = shares.in_words_of(tasks[task].memory[picker.key].terms, wanted)
        wanted = replace(wanted, view=View(wanted.fields, expand=True, share=True), where=calls.conditions(where))
        return cls(name, wanted, picker, where)

    @property
    def total(self) -> int:
        """Rows for all ranks."""
        return self.wanted.batch_size * self.picker.ranks

    def call(self) -> calls.Call:
        return calls.claim(self.name, self.wanted, self.picker, self.where)

    def explanation(self) -> calls.Call:
        return calls.explain(self.name, self.wanted, self.picker, self.where)

    def known(self, plain: Model) -> Told | None:
        """The answer for its key; None where the key is new or the sampler has no memory."""
        return shares.known(plain.find(self.name), self.wanted, self.picker)

    def takeable(self, partition: Partition) -> list[int]:
        """Rows that have all fields, are not taken, and pass `where`."""
        if not set(self.wanted.fields) <= partition.fields.keys():
            return []
        found = partition.takeable(self.wanted.task, self.wanted.fields)
        return [index for index in found if passes(partition.rows[index], self.where)]

    def usual(self, partition: Partition) -> int:
        """Rows that need not wait for more; a split takes all of the last ones it can."""
        if isinstance(self.picker, ByRank) and self.is_last(partition):
            return 1
        return self.picker.enough(partition, self.takeable(partition), self.total)

    def is_last(self, partition: Partition) -> bool:
        """All that is left of a sealed partition is ready."""
        takeable = self.takeable(partition)
        return partition.is_sealed and bool(takeable) and takeable == self._left(partition)

    def _left(self, partition: Partition) -> list[int]:
        taken = partition.taken(self.wanted.task)
        return [i for i, row in partition.rows.items() if i not in taken and passes(row, self.where)]

    def is_enough(self, partition: Partition, enough: int) -> bool:
        """As much is on offer, or something of the last rows."""
        return self._has(partition, enough) or (self.is_last(partition) and self._has(partition, 1))

    def _has(self, partition: Partition, enough: int) -> bool:
        takeable = self.takeable(partition)
        offered = len(self.picker.offered(partition, takeable)) * self.picker.n
        taken = len(self.picker.taken(partition, takeable, self.total)) * self.picker.n
        if enough > 1:  # as many for each rank
            taken -= taken % (self.picker.ranks * self.picker.n)
        return offered >= enough and taken >= enough

    def check_refused(self, body: Any, partition: Partition) -> None:
        assert body["claim"] is None, body
        assert body["batch"]["global_indexes"] == []
        stranded = partition.stranded(self.wanted.task, self.wanted.fields)
        is_done = partition.is_done(self.wanted.task) or bool(stranded)
        assert (body["wanted"], body["done"]) == (self.total, is_done)
        assert body.get("stranded", 0) == len(stranded)
        self._check_reasons(body, partition)

    def check_explained(self, answer: Answer, partition: Partition | None) -> None:
        """The same question, asked without taking."""
        held, body = partition or Partition(), answer.body
        found = shares.known(partition, self.wanted, self.picker)
        if found is not None and found.codes:
            assert answer.code in found.codes, answer
            return
        kept = held.tasks.get(self.wanted.task, Task())
        total = len(held.rows) + kept.consumed_gone(held) + max(0, (held.expected or 0) - held.inserted)
        meant = {**account(held, kept), "wanted": self.total, "total": total}
        assert {member: body[member] for member in meant} == meant
        assert body["done"] == held.is_done(self.wanted.task)
        self._check_reasons(body, held)

    def _check_reasons(self, body: Any, partition: Partition) -> None:
        takeable, again = self.takeable(partition), shares.known(partition, self.wanted, self.picker)
        assert body["ready"] == len(takeable if again is None else again.rows or ())
        found = {(reason["reason"], reason.get("field")): reason for reason in body["blocking"]}
        if ("partition-absent", None) in found:
            assert not partition.rows
            return
        self._check_fields(found, partition)
        task, there = partition.tasks.get(self.wanted.task, Task()), partition.rows.keys()
        same(found.get(("consumed", None)), task.consumed & there)
        same(found.get(("leased", None)), {*task.leased, *task.held} & there)
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
