"""Reads that may wait, against the model: when they can be answered, and with what (claims: claims.py).

`ready` is the whole condition under which such a call is answered before its time is up; `meet` takes the answer.
"""

from dataclasses import dataclass

from tests.model import calls
from tests.model.compare import key_line, meant_summary, summary
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
