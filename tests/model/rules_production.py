"""Rules about production leases, revoked cells, and following what changes of the keys."""

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from core.operations.produce import RowWrite
from tests.model import calls, draws
from tests.model.compare import key_line
from tests.model.rules_writing import Writing
from tests.model.said import Chosen, Write
from tests.model.samplers import Condition, passes
from tests.model.waiting import Follow


@dataclass
class Follower:
    """Somebody's copy of a partition's keys, kept by what changed since a revision."""

    name: str
    made_at: int
    limit: int
    where: list[Condition] | None
    revision: int
    lines: dict[str, Any] = field(default_factory=dict)


class Producing(Writing):
    """Rows that disappear unless they get a field; cells that are lost; keys that somebody follows."""

    def __init__(self) -> None:
        super().__init__()
        self.followers: list[Follower] = []

    def insert_for_a_time(self, name: str, data: st.DataObject) -> None:
        keys, ttl_s = data.draw(st.none() | draws.key_lists), data.draw(draws.times)
        count = None if keys else data.draw(st.integers(1, 3))
        said, meant = RowWrite(keys=keys, ttl_s=ttl_s), Write(keys=keys, ttl=ttl_s)
        done = self.both(calls.insert(name, count, said), lambda: self.plain.insert(name, count, meant))
        if done:
            assert (done[0]["global_indexes"], done[0]["created"]) == done[1]

    def renew(self, name: str, data: st.DataObject) -> None:
        indexes, keys, rows = self.some_rows(data, name)
        said, meant = data.draw(draws.columns((None, {}, {"a": 1}), rows))
        ttl_s = data.draw(draws.times)
        self.both(
            calls.patch_custom(name, RowWrite(indexes, keys, custom_meta=said, ttl_s=ttl_s), None),
            lambda: self.plain.patch_custom(name, Write(indexes, keys, custom=meant, ttl=ttl_s)),
        )

    def revoke(self, name: str, data: st.DataObject) -> None:
        chosen, partition = replace(self.chosen(data, name), where=None), self.plain.find(name)
        known = [*(partition.fields if partition else ()), "ids"]
        fields = data.draw(st.just(["ids"]) | draws.some_of([*dict.fromkeys(known)]))
        if partition and data.draw(st.booleans()):
            chosen = Chosen(list(partition.rows))
        done = self.both(calls.revoke(name, chosen, fields), lambda: self.plain.revoke(name, chosen, fields))
        if done:
            assert done[0]["revoked"] == done[1]

    def await_keys(self, name: str, data: st.DataObject) -> None:
        """From a revision of this partition on; what was before it was deleted is not known any more."""
        self.key = None
        partition = self.plain.find(name)
        if partition is not None:
            since = max(partition.made_at, self.plain.revision - data.draw(st.integers(-1, 4)))
            self.may_wait(Follow(name, since))

    def follow(self, name: str, data: st.DataObject) -> None:
        """Somebody begins, or goes on: then the copy is what a listing says."""
        self.followers = [one for one in self.followers if self._is_there(one)]
        partition = self.plain.find(name)
        if partition is None:
            return
        if len(self.followers) < 3:
            begin = partition.made_at
            limit, where = data.draw(st.sampled_from([1, 2, 100])), data.draw(st.none() | draws.wheres)
            self.followers.append(Follower(name, begin, limit, where, 0))
        follower = data.draw(st.sampled_from(self.followers))
        self._go_on(follower)
        rows = self.plain.state.partitions[follower.name].rows.values()
        listed = [row for row in rows if row.key is not None and passes(row, follower.where)]
        assert follower.lines == {row.key: key_line(row) for row in listed}

    def _is_there(self, follower: Follower) -> bool:
        """What became of a partition that was deleted is not told to those who followed it, if they have a copy."""
        partition = self.plain.find(follower.name)
        if partition is None or partition.made_at == follower.made_at:
            return partition is not None
        answer = self.service.do(calls.changes(follower.name, follower.revision, 0))
        assert answer.code == ("compacted" if follower.revision else None)
        return False

    def _go_on(self, follower: Follower) -> None:
        cursor, since = None, follower.revision
        while True:
            page = self.service.look(calls.changes(follower.name, since, 0, follower.limit, cursor, follower.where))
            follower.lines |= {line["key"]: line for line in page["keys"]}
            for key in page["removed"]:
                follower.lines.pop(key, None)
            follower.revision, cursor = page["revision"], page["next_cursor"]
            if cursor is None:
                return
