"""Rules about checkpoints: the state is kept, and comes back whatever was done since; who waits is turned away."""

import copy
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from core.events import Restored
from core.operations import checkpoints
from core.snapshot.checkpoint_file import Saved, looked_through
from tests.histories.audit import Audit
from tests.model.machine import Machine
from tests.model.state import State

KEPT = 3


@dataclass
class Moment:
    """What was saved: the service's own, and the model's; `kept` the replies by key, `audit` the books."""

    saved: Saved
    revision: int
    state: State
    kept: dict[str, Any]
    audit: Audit


class Restoring(Machine):
    """The state as it was, at a revision that never was."""

    def __init__(self) -> None:
        super().__init__()
        self.moments: list[Moment] = []

    def checkpoint(self, _: str, __: st.DataObject) -> None:
        self.plain.revision += not self.service.engine.history
        self.service.work(checkpoints.begin_history)
        revision, image = self.service.work(checkpoints.image_of)
        assert revision == self.plain.revision
        saved = looked_through(image)
        assert (saved.revision, saved.next_index) == (revision, self.plain.state.next_index)
        self._balance()
        self.moments.append(
            Moment(saved, revision, copy.deepcopy(self.plain.state), dict(self.kept), copy.deepcopy(self.audit))
        )
        del self.moments[:-KEPT]

    def go_back(self, _: str, data: st.DataObject) -> None:
        if not self.moments:
            return
        moment, unproduced = data.draw(st.sampled_from(self.moments)), data.draw(st.booleans())
        self._balance()
        revived = self.plain.go_back(moment.state, moment.revision, unproduced)
        epoch, burnt = self.service.engine.epoch, (moment.state.next_index, self.plain.state.next_index - 1)
        went = self.service.work(lambda engine: checkpoints.restore(engine, moment.saved, unproduced))
        assert (went.epoch, went.revived.tolist()) == (epoch + 1, revived)
        assert went.burnt == (burnt if burnt[0] <= burnt[1] else None)
        for parked in self.waiting:
            assert self.service.answered(parked.future).code == "epoch-mismatch"
        self.waiting.clear()
        self.kept = dict(moment.kept)
        self._begin_books_anew(moment.audit)

    def _balance(self) -> None:
        for change in self.service.changes():
            self.audit.take(change)

    def _begin_books_anew(self, audit: Audit) -> None:
        """As they were; but what was given out once is used up."""
        before, self.audit = self.audit, copy.deepcopy(audit)
        self.audit.restored()
        self.audit.used |= before.used
        self.audit.next_index = before.next_index
        went, *rest = self.service.changes()
        assert [type(event) for event in went.events] == [Restored]
        self.audit.revision = went.revision
        for change in rest:
            self.audit.take(change)
