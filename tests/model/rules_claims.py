"""Rules about consuming: claims and watches, which may wait; explain, and reset."""

from hypothesis import strategies as st

from tests.model import calls, draws
from tests.model.claims import Claim
from tests.model.machine import Machine
from tests.model.waiting import Watch


class Claiming(Machine):
    """Who takes what, who waits for what."""

    def claim(self, name: str, data: st.DataObject) -> None:
        self.may_wait(Claim.drawn(data, name, self.plain.find(name)))

    def claim_again(self, name: str, data: st.DataObject) -> None:
        """By a sampler with memory; mostly what is remembered, in the words that were said first."""
        self.may_wait(Claim.again(data, name, self.plain.find(name)))

    def explain(self, name: str, data: st.DataObject) -> None:
        asked, before = Claim.drawn(data, name, self.plain.find(name)), self.state()
        answer = self.service.do(asked.explanation())
        if name in self.plain.state.deleted:
            assert answer.code == "partition-cleared"
        else:
            asked.check_explained(answer, self.plain.find(name))
        assert self.state() == before

    def watch(self, name: str, data: st.DataObject) -> None:
        seen = max(0, self.plain.revision_of(name) + data.draw(st.integers(-1, 2)))
        self.key = None
        self.may_wait(Watch(name, seen))

    def reset(self, name: str, data: st.DataObject) -> None:
        task = data.draw(st.none() | draws.tasks)
        done = self.both(calls.reset(name, task), lambda: self.plain.reset(name, task))
        if done:
            assert done[0]["reset"] == done[1]
