"""Claims against the model: what goes out, what is answered when too little is there, and who may wait."""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from core.batch import View
from core.engine import Engine
from core.errors import PartitionCleared
from core.operations.claim import Claimed, NotClaimed, Wanted, claim
from core.parked import Parked
from core.samplers import sampler
from tests.model import draws
from tests.model.compare import described
from tests.model.model import Plain
from tests.model.plain import Partition, Task


@dataclass
class Waiting:
    """One claim, parked or not."""

    name: str
    wanted: Wanted
    n: int
    by: str | None
    parked: Parked[Any] | None = None

    @classmethod
    def drawn(cls, data: st.DataObject, name: str, partition: Partition | None) -> "Waiting":
        by = data.draw(st.sampled_from(["group_id", "group_id", "position", None, None]))
        sizes = Counter(row.group for row in partition.rows.values()).values() if partition else ()
        n = data.draw(st.sampled_from([*sizes, 1, 2, 2, 3])) if by else 1
        most = n * data.draw(st.sampled_from([1, 1, 2, 3]))
        arguments = {"n_samples_per_prompt": n, "group_by": by} if by else {}
        chosen = sampler("grpo_group" if by else "sequential", arguments)
        fields = tuple(data.draw(st.lists(st.sampled_from(["ids"] * 6 + ["mask", "text"]), min_size=1, max_size=2)))
        least = data.draw(st.integers(1, most))
        task = data.draw(draws.tasks)
        return cls(name, Wanted(task, fields, most, least, 5.0, chosen, View(fields, expand=True)), n, by)

    def begin(self, engine: Engine, plain: Plain) -> bool:
        """Send it; whether it waits."""
        if self.name in plain.state.deleted:
            self._is_cleared(lambda: claim(engine, self.name, self.wanted))
            return False
        return self._answered(claim(engine, self.name, self.wanted), plain, self.wanted.most, may_wait=True)

    def again(self, engine: Engine, plain: Plain, is_last: bool) -> bool:
        """Its partition changed, or (`is_last`) its time is up; whether it waits on."""
        parked = self.parked
        assert parked is not None
        if self.name in plain.state.deleted:
            self._is_cleared(lambda: parked.retry(is_last))
            return False
        enough = self.wanted.least if is_last else self.wanted.most
        return self._answered(parked.retry(is_last), plain, enough, may_wait=not is_last)

    @staticmethod
    def _is_cleared(call: Any) -> None:
        try:
            call()
        except PartitionCleared:
            return
        raise AssertionError("a claim in a deleted partition was answered")

    def offered(self, partition: Partition | None) -> list[list[int]]:
        """Groups that could go out: of one row each for `sequential`."""
        if partition is None or not set(self.wanted.fields) <= partition.fields.keys():
            return []
        if self.by is None:
            return [[index] for index in partition.takeable(self.wanted.task, self.wanted.fields)]
        return partition.whole_groups(self.wanted.task, self.wanted.fields, self.n, self.by)

    def enough(self, partition: Partition | None, usual: int) -> int:
        """The last rows of a sealed partition go out once all are ready, whatever the minimum."""
        if partition is None or not partition.is_sealed:
            return usual
        consumed = partition.tasks.get(self.wanted.task, Task()).consumed
        left = [index for index in partition.rows if index not in consumed]
        ready = partition.takeable(self.wanted.task, self.wanted.fields)
        return 1 if 0 < len(left) < self.wanted.most and left == ready else usual

    def _answered(self, answer: Any, plain: Plain, enough: int, *, may_wait: bool) -> bool:
        partition = plain.find(self.name)
        offered = self.offered(partition)
        if len(offered) * self.n >= self.enough(partition, enough):
            assert isinstance(answer, Claimed)
            assert partition is not None
            self._check_claimed(answer, partition, offered)
            plain.consume(self.name, self.wanted.task, answer.batch.global_indexes.tolist())
            return False
        if may_wait and not (partition and partition.is_done(self.wanted.task)):
            assert isinstance(answer, Parked)
            self.parked = answer
            return True
        assert isinstance(answer, NotClaimed)
        self._check_refused(answer, partition)
        return False

    def _check_claimed(self, answer: Claimed, partition: Partition, offered: list[list[int]]) -> None:
        indexes = answer.batch.global_indexes.tolist()
        groups = [indexes[at : at + self.n] for at in range(0, len(indexes), self.n)]
        assert len(groups) == min(self.wanted.most // self.n, len(offered))
        if self.by == "group_id":
            assert all(group in offered for group in groups)
            assert len(set(indexes)) == len(indexes)
        else:
            assert groups == offered[: len(groups)]
        assert answer.batch.status.tolist() == [1] * len(indexes)
        meant = described(partition, indexes, list(self.wanted.fields), False)
        assert list(answer.batch.fields) == meant["fields"]
        assert json.loads(answer.batch.custom_meta or b"") == meant["custom_meta"]
        backend = json.loads(answer.batch.backend_meta or b"")
        assert backend == meant["backend_meta"]

    def _check_refused(self, answer: NotClaimed, partition: Partition | None) -> None:
        partition = partition or Partition()
        task, fields = self.wanted.task, self.wanted.fields
        known = set(fields) <= partition.fields.keys()
        assert answer.ready == (len(partition.takeable(task, fields)) if known else 0)
        assert (answer.wanted, answer.done) == (self.wanted.most, partition.is_done(task))
        found = {(reason.reason, reason.field): reason.count for reason in answer.blocking}
        for name in fields:
            lacking = len(partition.rows) - len(partition.holders(name))
            if name not in partition.fields and answer.batch is not None:
                assert ("field-unknown", name) in found
            elif lacking and name in partition.fields:
                assert found["not-produced", name] == lacking
        consumed = len(partition.tasks.get(task, Task()).consumed)
        assert found.get(("consumed", None), 0) == consumed

    def check_ripe(self, plain: Plain) -> None:
        """Whoever could be answered is ripe; nobody else, but for windows of two groups, which show when taken."""
        assert self.parked is not None
        partition = plain.find(self.name)
        enough = self.enough(partition, self.wanted.most)
        ready = self.name in plain.state.deleted or len(self.offered(partition)) * self.n >= enough
        ready |= partition is not None and partition.is_done(self.wanted.task)
        if ready or self.by != "position":
            assert self.parked.is_ripe() == ready
