"""Rules about clears: plan, then commit or abort, sooner or later; writes meanwhile are the other rules'."""

from hypothesis import strategies as st

from tests.model import calls, draws
from tests.model.compare import clear_id
from tests.model.rules_writing import Writing
from tests.model.said import Chosen


class Clearing(Writing):
    """Rows that are on their way out."""

    def plan_clear(self, name: str, data: st.DataObject) -> None:
        chosen = self.chosen(data, name)
        if data.draw(st.integers(0, 5)) == 0:
            chosen = Chosen(everything=True, where=chosen.where)
        with_tombstones = data.draw(st.booleans())
        done = self.both(
            calls.plan_clear(name, chosen, with_tombstones),
            lambda: self.plain.plan_clear(name, chosen, with_tombstones),
        )
        if done:
            body, (clear, skipped) = done
            assert (body["clear_id"], body["state"]) == (clear_id(clear.number), "pending")
            assert body["skipped_clearing"] == skipped
            assert body["revision"] == clear.number

    def end_clear(self, _: str, data: st.DataObject) -> None:
        """Commit or abort; mostly one that is pending."""
        pending, closed = list(self.plain.state.clears), list(self.plain.state.settled)
        number = data.draw(st.sampled_from([*pending * 3, *closed, 987_654]))
        if data.draw(st.booleans()):
            done = self.both(calls.commit_clear(clear_id(number)), lambda: self.plain.commit_clear(number))
            assert done is None or (done[0]["state"], done[0]["cleared"]) == ("committed", done[1])
        else:
            done = self.both(calls.abort_clear(clear_id(number)), lambda: self.plain.abort_clear(number))
            assert done is None or done[0]["state"] == "aborted"

    def look_at_clears(self, _: str, data: st.DataObject) -> None:
        state = data.draw(st.sampled_from(["pending", "committed", "aborted"]))
        there = {**self.plain.state.clears, **self.plain.state.settled}
        prefix = data.draw(draws.prefixes)
        lines = self.service.look(calls.list_clears(state, prefix))["clears"]
        assert [line["clear_id"] for line in lines] == [
            clear_id(number)
            for number in sorted(there)
            if there[number].state == state and there[number].partition.startswith(prefix)
        ]
